package guard

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// sends answers so many bytes, and then nothing for so long.
type sends struct {
	bytes  int
	small  bool
	pause  time.Duration
	large  *atomic.Int32 // how many were read beyond a small answer and are not closed
	most   *atomic.Int32
	inside bool
	ctx    context.Context //nolint:containedctx // that of the request, which the reading of its answer belongs to
}

func (s sends) RoundTrip(r *http.Request) (*http.Response, error) {
	s.ctx = r.Context()
	return &http.Response{StatusCode: http.StatusOK, Body: &s}, nil
}

func (s *sends) Read(p []byte) (int, error) {
	if s.bytes > 0 {
		n := min(s.bytes, len(p))
		s.bytes -= n
		clear(p[:n])
		return n, nil
	}
	if !s.inside && !s.small { // whoever reads on got its place for what was read before
		s.inside = true
		s.most.Store(max(s.most.Load(), s.large.Add(1)))
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
		return 0, io.EOF
	}
}

func (s *sends) Close() error {
	if s.inside {
		s.large.Add(-1)
	}
	return nil
}

// TestLargeAnswersTakeTurns: however many large answers the API servers of one namespace give, and however slowly, few are read at a time; another
// namespace reads its own in turn, and small ones at once.
func TestLargeAnswersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, err := New(nil)
		if err != nil {
			t.Fatal(err)
		}
		var large, most atomic.Int32
		read := func(namespace string, bytes int, pause, timeout time.Duration) (int, error) {
			ctx, cancel := context.WithTimeout(t.Context(), timeout)
			defer cancel()
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example", http.NoBody)
			response, err := g.limit(sends{bytes: bytes, small: bytes < smallAnswer, pause: pause, large: &large, most: &most}, namespace).RoundTrip(r)
			if err != nil {
				return 0, err
			}
			defer response.Body.Close()
			text, err := io.ReadAll(response.Body)
			return len(text), err
		}
		began := time.Now()
		var noisy sync.WaitGroup
		for range 20 {
			noisy.Go(func() {
				if _, err := read("noisy", 2<<20, time.Hour, 30*time.Second); !errors.Is(err, ErrNoRoom) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("a slow answer: %v", err)
				}
			})
		}
		synctest.Wait()
		if n, err := read("quiet", smallAnswer/2, 0, time.Second); err != nil || time.Since(began) > 0 {
			t.Errorf("a small answer: %d bytes, %v, after %s", n, err, time.Since(began))
		}
		if n, err := read("quiet", 4<<20, time.Second, 30*time.Second); err != nil || n != 4<<20 {
			t.Errorf("a large answer: %d bytes, %v", n, err)
		}
		if took := time.Since(began); took < longestVisit || took > longestVisit+2*time.Second {
			t.Errorf("the quiet namespace had its turn after %s", took)
		}
		noisy.Wait()
		if most.Load() > places {
			t.Errorf("%d were read at a time", most.Load())
		}
		if n, err := read("noisy", 4<<20, 20*time.Second, time.Minute); err != nil || n != 4<<20 {
			t.Errorf("an answer that is slow while nobody waits: %d bytes, %v", n, err)
		}
		time.Sleep(time.Second)
		if g.room.free != places || len(g.room.inside) > 0 || g.room.wanted != 0 {
			t.Errorf("%d places are free, %d answers inside, %d wanted", g.room.free, len(g.room.inside), g.room.wanted)
		}
	})
}

// TestNoRoomIsSaid: who had no turn reads why.
func TestNoRoomIsSaid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoom()
		_, end := context.WithCancelCause(t.Context())
		for range places {
			if _, err := r.enter(t.Context(), "noisy", end); err != nil {
				t.Fatal(err)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.enter(ctx, "quiet", end)
		if !errors.Is(err, ErrNoRoom) || !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "2 are read at a time") {
			t.Error(err)
		}
	})
}
