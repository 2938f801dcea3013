package access

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/eventlog"
)

// server answers as an API server would.
type server struct {
	users  map[string]string // by token
	rights map[string]bool   // user/resource/namespace
	asked  int
	broken bool
}

type tokens struct{ *server }

func (s tokens) Create(_ context.Context, r *authentication.TokenReview, _ metav1.CreateOptions) (*authentication.TokenReview, error) {
	s.asked++
	if s.broken {
		return nil, errors.New("refused")
	}
	name, ok := s.users[r.Spec.Token]
	r.Status = authentication.TokenReviewStatus{Authenticated: ok, User: authentication.UserInfo{Username: name}}
	return r, nil
}

type reviews struct{ *server }

func (s reviews) Create(_ context.Context, r *authorization.SubjectAccessReview, _ metav1.CreateOptions) (*authorization.SubjectAccessReview, error) {
	s.asked++
	if s.broken {
		return nil, errors.New("refused")
	}
	a := r.Spec.ResourceAttributes
	r.Status.Allowed = a.Verb == "list" && a.Group == "scute.dev" && (s.rights[r.Spec.User+"/"+a.Resource+"/"+a.Namespace] || s.rights[r.Spec.User+"/"+a.Resource+"/"])
	return r, nil
}

func TestReviewer(t *testing.T) {
	s := &server{users: map[string]string{"t1": "one", "t2": "two", "t3": "three"}, rights: map[string]bool{"one/moves/a": true}}
	for _, resource := range resources() {
		s.rights["two/"+resource+"/"] = true
	}
	now := time.Unix(0, 0)
	r := &Reviewer{Tokens: tokens{s}, Access: reviews{s}, Now: func() time.Time { return now }}
	may := func(token string, kind eventlog.Kind, id string) bool {
		t.Helper()
		u, err := r.User(t.Context(), token)
		if err != nil {
			t.Fatal(err)
		}
		ok, err := r.May(t.Context(), u, eventlog.Aggregate{Kind: kind, ID: id})
		if err != nil {
			t.Fatal(err)
		}
		return ok
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
	if ok, err := r.May(t.Context(), User{}, eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a/m/1"}); ok || err == nil {
		t.Errorf("an API server that does not answer: %t %v", ok, err)
	}
}

func TestAnswersAreBounded(t *testing.T) {
	var a answers[string, bool]
	for i := range 3 * most {
		_, _ = a.get(fmt.Sprint(i), time.Unix(0, 0), keep, func() (bool, error) { return true, nil })
		if len(a.known) > most {
			t.Fatalf("%d answers are kept", len(a.known))
		}
	}
}
