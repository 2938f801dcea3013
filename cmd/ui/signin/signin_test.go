package signin

import (
	"fmt"
	"testing"
	"time"
)

// clock is one that a test sets.
type clock struct{ at time.Time }

func (c *clock) now() time.Time { return c.at }

func sessions() (*Sessions, *clock) {
	c := &clock{time.Unix(0, 0)}
	return &Sessions{Life: 10 * time.Hour, Idle: time.Hour, Now: c.now}, c
}

func TestSessionsEnd(t *testing.T) {
	s, c := sessions()
	signedOut, idle, used := s.Begin("one", "t1"), s.Begin("one", "t2"), s.Begin("two", "t3")
	if s.Token(signedOut) != "t1" || s.Token(used) != "t3" || s.Token("") != "" || s.Token("guess") != "" {
		t.Error("a session has not the token that it was begun with")
	}
	s.End(signedOut)
	if s.Token(signedOut) != "" {
		t.Error("who has signed out is there")
	}
	for range 19 {
		c.at = c.at.Add(30 * time.Minute)
		if s.Token(used) != "t3" {
			t.Fatalf("a session that is used ended after %s", c.at.Sub(time.Unix(0, 0)))
		}
	}
	if s.Token(idle) != "" {
		t.Error("a session that was not used is there")
	}
	c.at = c.at.Add(30 * time.Minute)
	if s.Token(used) != "" {
		t.Error("a session does not end")
	}
	if len(s.known) != 0 {
		t.Errorf("%d sessions are kept", len(s.known))
	}
}

// TestSessionsAreBounded: of a user and of all, the one that was used longest ago gives way.
func TestSessionsAreBounded(t *testing.T) {
	s, c := sessions()
	next := func() { c.at = c.at.Add(time.Millisecond) }
	first, second := s.Begin("one", "first"), ""
	for i := range mostOfUser {
		next()
		if i == 1 {
			second = s.Begin("one", "second")
			continue
		}
		_ = s.Token(first)
		_ = s.Begin("one", fmt.Sprint(i))
	}
	if s.Token(first) == "" || s.Token(second) == "" || len(s.known) != mostOfUser {
		t.Errorf("%d sessions of a user", len(s.known))
	}
	for i := range 2 * mostSessions {
		next()
		_ = s.Begin(fmt.Sprint("user", i), "t")
	}
	if len(s.known) != mostSessions || s.Token(first) != "" {
		t.Errorf("%d sessions", len(s.known))
	}
}

// TestServiceAccountsOfANamespaceShareTheirSessions: who makes ServiceAccounts and signs in with all of them ends no session of another user.
func TestServiceAccountsOfANamespaceShareTheirSessions(t *testing.T) {
	s, c := sessions()
	alice, other := s.Begin("alice", "a"), s.Begin("system:serviceaccount:other:one", "o")
	for i := range 2 * mostSessions {
		c.at = c.at.Add(time.Millisecond)
		_ = s.Begin(fmt.Sprintf("system:serviceaccount:tenant:%d", i), "t")
	}
	if s.Token(alice) != "a" || s.Token(other) != "o" || len(s.known) != mostOfUser+2 {
		t.Errorf("%d sessions, alice: %v, another namespace: %v", len(s.known), s.Token(alice) != "", s.Token(other) != "")
	}
}

func TestFailures(t *testing.T) {
	f, now := NewFailures(1), time.Unix(0, 0)
	for range mostFailures {
		if !f.Permits("a", now) {
			t.Fatal("refused too early")
		}
		f.Add("a", now)
	}
	f.Add("a", now)
	if f.Permits("a", now) || !f.Permits("b", now) {
		t.Error("failures are not counted by their source")
	}
	now = now.Add(forgiven/mostFailures - time.Millisecond)
	if f.Permits("a", now) {
		t.Error("one that is not forgiven yet gives way")
	}
	now = now.Add(time.Millisecond)
	if !f.Permits("a", now) {
		t.Error("no failure is forgiven")
	}
	f.Add("a", now)
	if f.Permits("a", now) {
		t.Error("all are forgiven at once")
	}
	for i := range 2 * mostSources {
		f.Add(fmt.Sprint(i), now)
	}
	if n := f.of.Len(); n > mostSources {
		t.Errorf("%d sources", n)
	}
	f = NewFailures(3)
	for range 3 * mostFailures {
		if !f.Permits("proxy", now) {
			t.Fatal("a source of three clients is refused too early")
		}
		f.Add("proxy", now)
	}
	if f.Permits("proxy", now) || !f.Permits("proxy", now.Add(forgiven/mostFailures/2)) {
		t.Error("a source of three clients is not forgiven three times as fast")
	}
}
