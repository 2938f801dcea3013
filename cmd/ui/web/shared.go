package web

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"scute.dev/cmd/ui/access"
	"scute.dev/cmd/ui/feed"
	"scute.dev/cmd/ui/page"
	"scute.dev/cmd/ui/signin"
)

const (
	// reviewTime is how long it may take to ask what a user may see.
	reviewTime = 20 * time.Second
	// drawings bounds how many pages are drawn at once, and of those that of the past: a daemon has other work to do.
	drawings = 2
	// proxied is how many clients' failures those of a proxy may be as many as.
	proxied = 10
	// drawTime is how long a page may wait until it is drawn.
	drawTime = 30 * time.Second
)

// Reviewer says who has a token and what of a log that user may see: access.Reviewer.
type Reviewer interface {
	Known(token string) bool
	User(ctx context.Context, token string) (access.User, error)
	Rights(ctx context.Context, u access.User, scopes iter.Seq[access.Scope]) (access.Rights, error)
}

// Shared serves the pages of a site to everybody who has a bearer token of the cluster, each limited to what that user may list. Nothing can be
// changed there. Handler makes it.
type Shared struct {
	Site     *page.Site
	Feed     *feed.Feed
	Reviewer Reviewer
	Sessions *signin.Sessions
	// Hosts are the names by which the server is asked for, with or without a port; empty is any, which TLS must then vouch for.
	Hosts []string
	// Audiences that a token must be for, as the page that asks for one says.
	Audiences []string
	// TLS says that browsers reach the server by TLS alone, and Proxied that a proxy is before it, which says in X-Forwarded-For for whom it asks.
	TLS, Proxied bool
	// Unready says why the pages cannot be shown now; nil if they can.
	Unready func() error
	Logger  *slog.Logger
}

// Handler makes the handler.
func (s *Shared) Handler() (http.Handler, error) {
	d := &gateway{Shared: s, failures: signin.NewFailures(1), proxies: signin.NewFailures(proxied), present: semaphore.NewWeighted(drawings), past: semaphore.NewWeighted(1)}
	h := &handler{site: s.Site, feed: s.Feed, drawn: newDrawn(), look: d.look, refuse: d.refuse, over: d.over, turn: d.turn}
	mux, err := h.routes()
	if err != nil {
		return nil, err
	}
	mux.HandleFunc("GET "+page.SignInPath, d.ask)
	mux.HandleFunc("POST "+page.SignInPath, d.signIn)
	mux.HandleFunc("POST "+page.SignOutPath, d.signOut)
	d.next = mux
	return d, nil
}

// gateway lets in who has a token.
type gateway struct {
	*Shared
	failures      *signin.Failures // of clients
	proxies       *signin.Failures // of what is before the server, for all its clients together
	scopes        scopes
	present, past *semaphore.Weighted
	next          http.Handler
}

// Errors that a request is refused with.
var (
	errNobody  = errors.New("nobody is signed in")
	errOften   = errors.New("too many tokens from your address were refused: wait a minute, then try again")
	errUnasked = errors.New("the API server could not be asked who you are and what you may see: try again; the log of the daemon says what is wrong")
	errBusy    = errors.New("too many pages are asked for at once: try again")
)

// look is what the user of a request may see now.
func (d *gateway) look(r *http.Request) (look, error) {
	if err := d.Unready(); err != nil {
		return look{}, fmt.Errorf("%w: %w", errBehind, err)
	}
	v := d.visit(r)
	user, err := d.user(r, v)
	if err != nil {
		return look{}, err
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	rights, err := d.Reviewer.Rights(ctx, user, d.scopes.of(d.Feed))
	if err != nil {
		return look{}, d.unasked(r, err)
	}
	return look{site: d.Site.For(rights.Sees).As(user.Name(), v.session != ""), rights: rights.ID(), person: signin.Person(user.Name())}, nil
}

// errBehind is what pages say that cannot be shown yet, or not any more.
var errBehind = errors.New("the pages cannot be shown now")

// scopes are those of all that a log is about, which only become more.
type scopes struct {
	mu    sync.Mutex
	seen  int // of the aggregates
	known map[access.Scope]bool
	all   []access.Scope
}

func (s *scopes) of(f *feed.Feed) iter.Seq[access.Scope] {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known == nil {
		s.known = make(map[access.Scope]bool)
	}
	list := f.Commits.Aggregates()
	for _, a := range list[min(s.seen, len(list)):] {
		if one := access.ScopeOf(a); !s.known[one] {
			s.known[one] = true
			s.all = append(s.all, one)
		}
	}
	s.seen = max(s.seen, len(list))
	return slices.Values(s.all[:len(s.all):len(s.all)])
}

// turn waits until a page may be drawn. The past is drawn one page at a time: a log may have to be read from its beginning.
func (d *gateway) turn(ctx context.Context, past bool) (done func(), err error) {
	ctx, cancel := context.WithTimeout(ctx, drawTime)
	defer cancel()
	if past {
		if d.past.Acquire(ctx, 1) != nil {
			return nil, errBusy
		}
	}
	if d.present.Acquire(ctx, 1) != nil {
		if past {
			d.past.Release(1)
		}
		return nil, errBusy
	}
	return func() {
		d.present.Release(1)
		if past {
			d.past.Release(1)
		}
	}, nil
}

// unasked logs why the API server could not be asked: its address is nothing for a page.
func (d *gateway) unasked(r *http.Request, err error) error {
	if r.Context().Err() == nil {
		d.Logger.Warn("the API server could not be asked what a user of the pages may see", "error", err)
	}
	return errUnasked
}
