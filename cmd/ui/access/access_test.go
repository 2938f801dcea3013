package access

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/eventlog"
)

// server answers as an API server would.
type server struct {
	users     map[string]string // by token
	rights    map[string]bool   // user/resource/namespace
	audiences []string
	mu        sync.Mutex
	asked     int
	broken    bool
}

func (s *server) ask() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked++
	if s.broken {
		return errors.New("refused")
	}
	return nil
}

type tokens struct{ *server }

func (s tokens) Create(_ context.Context, r *authentication.TokenReview, _ metav1.CreateOptions) (*authentication.TokenReview, error) {
	if err := s.ask(); err != nil {
		return nil, err
	}
	name, ok := s.users[r.Spec.Token]
	r.Status = authentication.TokenReviewStatus{Authenticated: ok, Audiences: s.audiences, User: authentication.UserInfo{Username: name}}
	return r, nil
}

type reviews struct{ *server }

func (s reviews) Create(_ context.Context, r *authorization.SubjectAccessReview, _ metav1.CreateOptions) (*authorization.SubjectAccessReview, error) {
	if err := s.ask(); err != nil {
		return nil, err
	}
	a := r.Spec.ResourceAttributes
	r.Status.Allowed = a.Verb == "list" && a.Group == "scute.dev" && (s.rights[r.Spec.User+"/"+a.Resource+"/"+a.Namespace] || s.rights[r.Spec.User+"/"+a.Resource+"/"])
	return r, nil
}

func TestReviewer(t *testing.T) {
	s := &server{users: map[string]string{"t1": "one", "t2": "two", "t3": "three"}, rights: map[string]bool{"one/moves/a": true}}
	for _, kind := range kinds() {
		s.rights["two/"+resource(kind)+"/"] = true
	}
	now := time.Unix(0, 0)
	r := &Reviewer{Tokens: tokens{s}, Access: reviews{s}, Now: func() time.Time { return now }}
	may := func(token string, kind eventlog.Kind, id string) bool {
		t.Helper()
		u, err := r.User(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		a := eventlog.Aggregate{Kind: kind, ID: id}
		rights, err := r.Rights(t.Context(), u, slices.Values([]Scope{ScopeOf(a), ScopeOf(a)}))
		if err != nil {
			t.Fatal(err)
		}
		if rights.Sees(eventlog.Aggregate{Kind: kind, ID: "not-asked/m/1"}) && !rights.all[kind] && !rights.whole {
			t.Errorf("%s may read what was not asked for", token)
		}
		return rights.Sees(a)
	}
	for _, c := range []struct {
		token string
		kind  eventlog.Kind
		id    string
		want  bool
	}{
		{"t1", eventlog.KindMove, "a/m/1", true},
		{"t1", eventlog.KindMove, "ab/m/1", false},
		{"t1", eventlog.KindMove, "/m/1", false},
		{"t1", eventlog.KindMove, "a", false},
		{"t1", eventlog.KindRun, "a/m/1", false},
		{"t1", eventlog.KindDaemon, "log", false},
		{"t1", "another", "a/m/1", false},
		{"t2", eventlog.KindRun, "a/m/1", true},
		{"t2", eventlog.KindDaemon, "log", true},
		{"t3", eventlog.KindMove, "a/m/1", false},
	} {
		if got := may(c.token, c.kind, c.id); got != c.want {
			t.Errorf("%s may read %s/%s: %t", c.token, c.kind, c.id, got)
		}
	}
	before := s.asked
	delete(s.rights, "one/moves/a")
	if !may("t1", eventlog.KindMove, "a/m/1") || s.asked != before {
		t.Error("an answer was not kept")
	}
	now = now.Add(keep)
	if may("t1", eventlog.KindMove, "a/m/1") {
		t.Error("a right that was taken away is there after a minute")
	}
	delete(s.users, "t1")
	now = now.Add(keep)
	for _, token := range []string{"t1", "", "none", string(make([]byte, tokenBytes+1))} {
		if _, err := r.User(t.Context(), token); !errors.Is(err, ErrToken) {
			t.Errorf("%.8q: %v", token, err)
		}
	}
	s.broken = true
	if _, err := r.User(t.Context(), "t3"); err == nil || errors.Is(err, ErrToken) {
		t.Errorf("an API server that does not answer: %v", err)
	}
	if rights, err := r.Rights(t.Context(), User{}, slices.Values([]Scope{{eventlog.KindMove, "a"}})); err == nil || rights.Sees(eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a/m/1"}) {
		t.Errorf("an API server that does not answer: %v %v", rights, err)
	}
}

// TestWhoMaySeeTheSame has the same rights, whatever the name, and another who may see something else.
func TestWhoMaySeeTheSame(t *testing.T) {
	s := &server{users: map[string]string{"t1": "one", "t2": "two", "t3": "three"}, rights: map[string]bool{"one/moves/a": true, "two/moves/a": true, "three/moves/b": true}}
	r := &Reviewer{Tokens: tokens{s}, Access: reviews{s}}
	ids := make(map[string]string)
	for token, name := range s.users {
		u, err := r.User(t.Context(), token)
		if err != nil || u.Name() != name {
			t.Fatalf("%s: %v", u.Name(), err)
		}
		rights, err := r.Rights(t.Context(), u, slices.Values([]Scope{{eventlog.KindMove, "a"}, {eventlog.KindMove, "b"}, {}}))
		if err != nil {
			t.Fatal(err)
		}
		ids[name] = rights.ID()
	}
	if ids["one"] != ids["two"] || ids["one"] == ids["three"] || ids["one"] == "" {
		t.Errorf("%v", ids)
	}
}

// TestAudience: a token that the API server accepts for itself is not one for the pages.
func TestAudience(t *testing.T) {
	s := &server{users: map[string]string{"t1": "one"}}
	r := &Reviewer{Tokens: tokens{s}, Access: reviews{s}, Audiences: []string{"scute-ui"}}
	if _, err := r.User(t.Context(), "t1"); !errors.Is(err, ErrToken) {
		t.Errorf("a token for nobody in particular: %v", err)
	}
	s.audiences = []string{"another", "scute-ui"}
	if _, err := r.User(t.Context(), "t1"); err != nil || !r.Known("t1") || r.Known("t2") {
		t.Errorf("a token for the pages: %v", err)
	}
}

// TestTheSameIsAskedOnce though many ask it at once, and one of them goes away.
func TestTheSameIsAskedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var a answers[string, int]
		asked, answered := 0, make(chan struct{})
		get := func(ctx context.Context) (int, error) {
			return a.get(ctx, "key", time.Now, keep, 10, func(context.Context) (int, error) {
				asked++
				<-answered
				return 7, nil
			})
		}
		gone, leave := context.WithCancel(t.Context())
		left, got := make(chan error), make(chan int)
		go func() {
			_, err := get(gone)
			left <- err
		}()
		synctest.Wait()
		for range 5 {
			go func() {
				n, _ := get(t.Context())
				got <- n
			}()
		}
		synctest.Wait()
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		close(answered)
		for range 5 {
			if n := <-got; n != 7 {
				t.Errorf("got %d", n)
			}
		}
		if asked != 1 {
			t.Errorf("it was asked %d times", asked)
		}
	})
}

func TestAnswersAreBounded(t *testing.T) {
	var a answers[string, bool]
	now := time.Unix(0, 0)
	const most = 100
	for i := range 3 * most {
		if i == most {
			now = now.Add(keep / 2)
		}
		_, _ = a.get(t.Context(), fmt.Sprint(i), func() time.Time { return now }, keep, most, func(context.Context) (bool, error) { return true, nil })
		if len(a.known) > most || len(a.asked) > 0 {
			t.Fatalf("%d answers are kept", len(a.known))
		}
	}
}
