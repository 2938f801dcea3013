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

// slowBody is a response that returns bytes, and then blocks for the pause.
type slowBody struct {
	bytes int
	pause time.Duration

	counter *bodyCounter
	counted bool
	ctx     context.Context //nolint:containedctx // that of the request, which the reading of its answer belongs to
}

// bodyCounter counts the responses that were read to the end and are not closed.
type bodyCounter struct{ now, peak atomic.Int32 }

func (s slowBody) RoundTrip(r *http.Request) (*http.Response, error) {
	s.ctx = r.Context()
	return &http.Response{StatusCode: http.StatusOK, Body: &s}, nil
}

func (s *slowBody) Read(p []byte) (int, error) {
	if s.bytes > 0 {
		n := min(s.bytes, len(p))
		s.bytes -= n
		clear(p[:n])
		return n, nil
	}
	if s.counter != nil && !s.counted { // a client that reads further already had room for the earlier bytes
		s.counted = true
		s.counter.peak.Store(max(s.counter.peak.Load(), s.counter.now.Add(1)))
	}
	select {
	case <-s.ctx.Done():
		return 0, s.ctx.Err()
	case <-time.After(s.pause):
		return 0, io.EOF
	}
}

func (s *slowBody) Close() error {
	if s.counted {
		s.counter.now.Add(-1)
	}
	return nil
}

// runBubble runs a test in a bubble, and then checks that all rooms are empty.
func runBubble(t *testing.T, do func(t *testing.T, g *Guard)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		g, err := New(nil)
		if err != nil {
			t.Fatal(err)
		}
		do(t, g)
		time.Sleep(time.Minute)
		for _, namespace := range []string{"x", "y"} { // the slots are free again
			slot := g.slots.Slot(namespace)
			if slot.Request(); !slot.Held() {
				t.Error("a slot was not released")
			}
		}
	})
}

func open(ctx context.Context, t *testing.T, by http.RoundTripper) io.ReadCloser {
	t.Helper()
	r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example", http.NoBody)
	response, err := by.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	return response.Body
}

func read(t *testing.T, g *Guard, namespace string, s slowBody, timeout time.Duration) (int, error) {
	t.Helper()
	return readThrough(t, g.limit(s, namespace), timeout)
}

func readThrough(t *testing.T, by http.RoundTripper, timeout time.Duration) (int, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), timeout)
	defer cancel()
	body := open(ctx, t, by)
	defer body.Close()
	text, err := io.ReadAll(body)
	return len(text), err
}

// TestLargeAnswersTakeTurns checks that large responses for one namespace, however many and slow, are read one at a
// time. Another namespace reads its responses at once.
func TestLargeAnswersTakeTurns(t *testing.T) {
	for name, noise := range map[string]func(g *Guard, s slowBody) http.RoundTripper{
		"of API servers":  func(g *Guard, s slowBody) http.RoundTripper { return g.limit(s, "noisy") },
		"of repositories": func(g *Guard, s slowBody) http.RoundTripper { return g.Bound(s, "noisy", 8<<20) },
	} {
		t.Run(name, func(t *testing.T) { checkLargeResponsesTakeTurns(t, noise) })
	}
}

func checkLargeResponsesTakeTurns(t *testing.T, noise func(g *Guard, s slowBody) http.RoundTripper) {
	t.Helper()
	runBubble(t, func(t *testing.T, g *Guard) {
		var large bodyCounter
		began := time.Now()
		var noisy sync.WaitGroup
		for range 20 {
			noisy.Go(func() {
				_, err := readThrough(t, noise(g, slowBody{bytes: 2 << 20, pause: time.Hour, counter: &large}), 40*time.Second)
				if !errors.Is(err, ErrBusy) && !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("slow response: %v", err)
				}
			})
		}
		synctest.Wait()
		if n, err := read(t, g, "quiet", slowBody{bytes: 1 << 19}, time.Second); err != nil || time.Since(began) > 0 {
			t.Errorf("small response: %d bytes, error %v, after %s", n, err, time.Since(began))
		}
		if n, err := read(t, g, "quiet", slowBody{bytes: 4 << 20, pause: time.Second, counter: &large}, 30*time.Second); err != nil || n != 4<<20 {
			t.Errorf("large response: %d bytes, error %v", n, err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("the quiet namespace had its turn after %s", took)
		}
		noisy.Wait()
		if most := large.peak.Load(); most != 2 {
			t.Errorf("%d responses were read at a time, want 2", most)
		}
	})
}

// TestSlowAnswersOfOneNamespace checks that slow responses are not interrupted before maxReadTime.
func TestSlowAnswersOfOneNamespace(t *testing.T) {
	runBubble(t, func(t *testing.T, g *Guard) {
		var all sync.WaitGroup
		for range 6 {
			all.Go(func() {
				if n, err := read(t, g, "far", slowBody{bytes: 7 << 20, pause: 24 * time.Second}, 3*time.Minute); err != nil || n != 7<<20 {
					t.Errorf("read %d bytes, error %v", n, err)
				}
			})
		}
		all.Wait()
	})
}

// TestVeryLargeAnswersAreReadAlone checks that only one large response of a namespace is read at a time, beside one of
// another namespace.
func TestVeryLargeAnswersAreReadAlone(t *testing.T) {
	runBubble(t, func(t *testing.T, g *Guard) {
		var huge, large bodyCounter
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				if n, err := read(t, g, "a", slowBody{bytes: 30 << 20, pause: time.Second, counter: &huge}, time.Minute); err != nil || n != 30<<20 {
					t.Errorf("read %d bytes, error %v", n, err)
				}
			})
		}
		if _, err := read(t, g, "b", slowBody{bytes: 8 << 20, counter: &large}, time.Minute); err != nil {
			t.Error(err)
		}
		all.Wait()
		if huge.peak.Load() != 1 || large.peak.Load() != 1 {
			t.Errorf("%d very large and %d large responses at a time, want 1 each", huge.peak.Load(), large.peak.Load())
		}
	})
}

// TestVeryLargeAnswersTakeTurns checks that slow responses of one namespace do not delay those of another.
func TestVeryLargeAnswersTakeTurns(t *testing.T) {
	runBubble(t, func(t *testing.T, g *Guard) {
		ctx, cancel := context.WithCancel(t.Context())
		var noisy sync.WaitGroup
		for i := range 3 {
			noisy.Go(func() {
				time.Sleep(time.Duration(i) * 3 * time.Second)
				for ctx.Err() == nil {
					_, _ = read(t, g, "noisy", slowBody{bytes: 28 << 20, pause: time.Hour}, 30*time.Second)
				}
			})
		}
		time.Sleep(10 * time.Second)
		for range 4 {
			if n, err := read(t, g, "quiet", slowBody{bytes: 28 << 20}, 30*time.Second); err != nil || n != 28<<20 {
				t.Errorf("read %d bytes, error %v", n, err)
			}
			time.Sleep(time.Second)
		}
		cancel()
		noisy.Wait()
	})
}

// TestPlacesAreGivenBack checks that room is released by a response that is closed while it waits, and by one that is
// not closed when its request ends.
func TestPlacesAreGivenBack(t *testing.T) {
	runBubble(t, func(t *testing.T, g *Guard) {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		slow := slowBody{bytes: 2 << 20, pause: time.Hour}
		for range 2 {
			go func() { _, _ = io.ReadAll(open(ctx, t, g.limit(slow, "a"))) }() // which is never closed
		}
		synctest.Wait()
		waits := open(t.Context(), t, g.limit(slow, "a"))
		go func() { _, _ = io.ReadAll(waits) }()
		synctest.Wait()
		waits.Close()
		waits.Close()
	})
}

// TestWhoIsEndedLeavesAtOnce checks that an interrupted response releases its room at once, because it is not decoded.
func TestWhoIsEndedLeavesAtOnce(t *testing.T) {
	runBubble(t, func(t *testing.T, g *Guard) {
		var noisy sync.WaitGroup
		noisy.Go(func() {
			if _, err := read(t, g, "noisy", slowBody{bytes: 30 << 20, pause: time.Hour}, time.Minute); !errors.Is(err, ErrBusy) {
				t.Errorf("slow response: %v, want ErrBusy", err)
			}
		})
		synctest.Wait()
		began := time.Now()
		if _, err := read(t, g, "quiet", slowBody{bytes: 30 << 20}, time.Minute); err != nil {
			t.Error(err)
		}
		if took := time.Since(began); took > maxReadTime {
			t.Errorf("another namespace had its turn after %s", took)
		}
		noisy.Wait()
	})
}

type roundTripper func(r *http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestEndedRequestsHaveNoAnswer checks that a response that ends at the deadline of its request is an error, even if it
// appears complete.
func TestEndedRequestsHaveNoAnswer(t *testing.T) {
	runBubble(t, func(t *testing.T, g *Guard) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		late := roundTripper(func(*http.Request) (*http.Response, error) {
			time.Sleep(2 * time.Second)
			return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader("half"))}, nil
		})
		for name, transport := range map[string]http.RoundTripper{"an API server": g.limit(late, "n"), "another server": g.Bound(late, "n", 1<<20)} {
			r, _ := http.NewRequestWithContext(ctx, http.MethodGet, "https://api.example", http.NoBody)
			response, err := transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			if text, err := io.ReadAll(response.Body); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: read %q, error %v, want DeadlineExceeded", name, text, err)
			}
			_ = response.Body.Close()
		}
	})
}
