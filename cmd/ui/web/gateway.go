package web

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ui/access"
	"scute.dev/cmd/ui/page"
)

const (
	// formTime is how long a form may take to come.
	formTime = 20 * time.Second
	// answerTime is how long an answer may take, with what is asked and drawn for it; an open page has its own bound for each message.
	answerTime = 2 * time.Minute
)

func (d *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h, to := w.Header(), http.NewResponseController(w)
	protect(h)
	_ = to.SetWriteDeadline(time.Now().Add(answerTime)) // what a test records has none
	switch {
	case !d.meant(r):
		http.Error(w, "This address is not served here: use one that the daemon was told to serve (--ui-hosts, in the chart ui.hosts).", http.StatusForbidden)
	case impersonates(r):
		http.Error(w, "A user cannot be impersonated here: the proxy must send the token of the user, and no header that begins with Impersonate-.", http.StatusForbidden)
	case r.Method == http.MethodPost && (r.URL.Path == page.SignInPath || r.URL.Path == page.SignOutPath):
		if !d.own(r) {
			http.Error(w, "This form was not sent by a page of this server: nothing was done.", http.StatusForbidden)
			return
		}
		_ = to.SetReadDeadline(time.Now().Add(formTime))
		r.Body = http.MaxBytesReader(w, r.Body, formBytes)
		d.next.ServeHTTP(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Nothing can be changed here.", http.StatusMethodNotAllowed)
	default:
		d.next.ServeHTTP(w, r)
	}
}

// meant says that a request names this server, and was not made by the page of another one.
func (d *gateway) meant(r *http.Request) bool {
	return d.named(r.Host) && (r.Header.Get("Origin") == "" || d.origin(r)) && !foreign(r)
}

// impersonates says that what is before this server sends its own token and says beside it for whom. That token is not the user's: nothing is
// shown for it.
func impersonates(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}

// named says that a name, with or without a port, is one of this server.
func (d *gateway) named(host string) bool {
	name := hostname(host)
	return len(d.Hosts) == 0 || slices.ContainsFunc(d.Hosts, func(h string) bool { return strings.EqualFold(h, host) || strings.EqualFold(h, name) })
}

func hostname(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// origin says that the origin of a request is this server. What is before it may end TLS and name it otherwise, by one of its names.
func (d *gateway) origin(r *http.Request) bool {
	u, err := url.Parse(r.Header.Get("Origin"))
	return err == nil && (u.Scheme == "https" || u.Scheme == "http" && !d.TLS) && (strings.EqualFold(u.Host, r.Host) || len(d.Hosts) > 0 && d.named(u.Host))
}

// own says that a form was sent by a page of this server: a browser says so, and cannot be made to say it for another page.
func (d *gateway) own(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	return d.origin(r) && (from == "" || from == "same-origin")
}

// visit is what a request comes with: a token, and the session that it is from, "" for one in the request itself.
type visit struct{ token, session string }

// visit prefers the token that a proxy added to a session.
func (d *gateway) visit(r *http.Request) visit {
	if scheme, token, ok := strings.Cut(r.Header.Get("Authorization"), " "); ok && strings.EqualFold(scheme, "Bearer") {
		return visit{token: strings.TrimSpace(token)}
	}
	if c, err := r.Cookie(d.cookie()); err == nil {
		if token := d.Sessions.Token(c.Value); token != "" {
			return visit{token: token, session: c.Value}
		}
	}
	return visit{}
}

// cookie is the name of the cookie. With TLS a browser takes it from this server alone.
func (d *gateway) cookie() string {
	if d.TLS {
		return "__Host-scute-ui"
	}
	return "scute-ui"
}

// user is who a request is from. A session whose token is not valid any more ends.
func (d *gateway) user(r *http.Request, v visit) (access.User, error) {
	if v.token == "" {
		return access.User{}, errNobody
	}
	user, err := d.review(r, v)
	if errors.Is(err, access.ErrToken) && v.session != "" {
		d.Sessions.End(v.session)
		d.Logger.Info("a session of the pages ended: the token is not valid any more", "from", d.client(r))
		return access.User{}, errNobody
	}
	return user, err
}

// review asks who has a token. Of an address from which too many came that are not valid, no unknown one is asked about.
func (d *gateway) review(r *http.Request, v visit) (access.User, error) {
	from, proxy, now := d.client(r), source(r), time.Now()
	if v.session == "" && !d.Reviewer.Known(v.token) && (!d.failures.Permits(from, now) || !d.proxies.Permits(proxy, now)) {
		return access.User{}, errOften
	}
	ctx, cancel := context.WithTimeout(r.Context(), reviewTime)
	defer cancel()
	user, err := d.Reviewer.User(ctx, v.token)
	switch {
	case errors.Is(err, access.ErrToken):
		if v.session == "" {
			d.failures.Add(from, now)
			d.proxies.Add(proxy, now)
			d.Logger.Info("a token for the pages was refused", "from", from)
		}
		return user, err
	case err != nil:
		return user, d.unasked(r, err)
	}
	return user, nil
}

// source is the address that a request came from.
func source(r *http.Request) string { return hostname(r.RemoteAddr) }

// client is for whom a request was sent: behind a proxy it is the last address that the proxy names, the one that it saw itself, so that nobody
// is held up by what another one behind the same proxy guesses. An address of IPv6 counts as its network, of which one client has all.
func (d *gateway) client(r *http.Request) string {
	from := source(r)
	if all := r.Header.Values("X-Forwarded-For"); d.Proxied && len(all) > 0 {
		list := strings.Split(all[len(all)-1], ",")
		if at, err := netip.ParseAddr(strings.TrimSpace(list[len(list)-1])); err == nil {
			return from + " for " + network(at)
		}
	}
	if at, err := netip.ParseAddr(from); err == nil {
		return network(at)
	}
	return from
}

func network(at netip.Addr) string {
	if at = at.Unmap().WithZone(""); at.Is6() {
		if of, err := at.Prefix(64); err == nil {
			return of.String()
		}
	}
	return at.String()
}

// refuse answers a request that is shown nothing.
func (d *gateway) refuse(w http.ResponseWriter, r *http.Request, err error) {
	code := http.StatusServiceUnavailable
	switch {
	case errors.Is(err, errNobody) && !strings.HasPrefix(r.URL.Path, "/live/"):
		http.Redirect(w, r, page.SignInAt(r.URL.RequestURI()), http.StatusSeeOther)
		return
	case errors.Is(err, errNobody) && strings.Contains(r.Header.Get("Accept"), "text/event-stream"):
		w.Header().Set("Content-Type", "text/event-stream") // what the page shows is over
		d.over(&stream{w: w, to: http.NewResponseController(w)}, r, err)
		return
	case errors.Is(err, errNobody), errors.Is(err, access.ErrToken):
		w.Header().Set("WWW-Authenticate", "Bearer")
		code = http.StatusUnauthorized
	case errors.Is(err, errOften):
		code = http.StatusTooManyRequests
	}
	w.Header().Set("Retry-After", "30")
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(d.Site.Error(err)) // who has gone away reads no error
}

// over ends an open page. One whose session is over shows nothing any more; of any other reason the browser connects again.
func (d *gateway) over(s *stream, r *http.Request, err error) {
	if !errors.Is(err, errNobody) {
		return
	}
	query := r.URL.Query()
	query.Del("after")
	part, err := page.Ended((&url.URL{Path: of(r), RawQuery: query.Encode()}).String())
	if err == nil && s.send([]byte("retry: 60000\n")) == nil {
		_ = s.message(part, 0) // the connection ends in any case
	}
}
