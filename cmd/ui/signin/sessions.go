package signin

import (
	"crypto/rand"
	"crypto/sha256"
	"strings"
	"sync"
	"time"
)

// Bounds of the sessions that are kept.
const (
	mostSessions = 1024
	mostOfUser   = 16
)

// Sessions are those of who has signed in. A session is known by a random id, and has the token of its user, which is in memory alone.
// It is safe for concurrent use.
type Sessions struct {
	// Life is how long a session lasts, Idle how long without a request.
	Life, Idle time.Duration
	// Now is the clock; time.Now if nil.
	Now func() time.Time

	mu    sync.Mutex
	known map[[sha256.Size]byte]*session
}

type session struct {
	user, token string
	began, used time.Time
}

// Begin begins a session, and returns its id. Of a user that has as many sessions as one may have, and of all where there are as many as
// there may be, the one that was used longest ago ends.
func (s *Sessions) Begin(user, token string) (id string) {
	user = Person(user)
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.now()
	for key, one := range s.known {
		if s.over(one, now) {
			delete(s.known, key)
		}
	}
	s.room(mostOfUser, func(one *session) bool { return one.user == user })
	s.room(mostSessions, func(*session) bool { return true })
	id = rand.Text()
	if s.known == nil {
		s.known = make(map[[sha256.Size]byte]*session)
	}
	s.known[sha256.Sum256([]byte(id))] = &session{user: user, token: token, began: now, used: now}
	return id
}

// Person is whom the sessions of a user count for. Who may make tokens of one ServiceAccount may most often make others in its namespace, with
// their tokens: all of a namespace count as one.
func Person(user string) string {
	const account = "system:serviceaccount:"
	if of, ok := strings.CutPrefix(user, account); ok {
		namespace, _, _ := strings.Cut(of, ":")
		return account + namespace
	}
	return user
}

// room makes room for one more of some sessions.
func (s *Sessions) room(most int, of func(*session) bool) {
	n, oldest := 0, [sha256.Size]byte{}
	for key, one := range s.known {
		if !of(one) {
			continue
		}
		if n++; n == 1 || one.used.Before(s.known[oldest].used) {
			oldest = key
		}
	}
	if n >= most {
		delete(s.known, oldest)
	}
}

// Token is the token of a session, which is thereby used; "" if there is no such session, or none any more.
func (s *Sessions) Token(id string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	key, now := sha256.Sum256([]byte(id)), s.now() // who measures how long a search takes learns nothing of an id
	one := s.known[key]
	switch {
	case one == nil:
		return ""
	case s.over(one, now):
		delete(s.known, key)
		return ""
	}
	one.used = now
	return one.token
}

// End ends a session.
func (s *Sessions) End(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.known, sha256.Sum256([]byte(id)))
}

func (s *Sessions) over(one *session, now time.Time) bool {
	return now.Sub(one.began) >= s.Life || now.Sub(one.used) >= s.Idle
}

func (s *Sessions) now() time.Time {
	if s.Now == nil {
		return time.Now()
	}
	return s.Now()
}
