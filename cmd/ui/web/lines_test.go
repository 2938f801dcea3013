package web

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"
)

// TestWhoAsksForManyPages waits for them, and keeps nobody else waiting.
func TestWhoAsksForManyPages(t *testing.T) {
	p := newPlace(t, nil)
	synctest.Test(t, func(t *testing.T) {
		site := p.gateway.Site
		h := &handler{
			look:   func(r *http.Request) (look, error) { return look{site: site, person: r.Header.Get("User")}, nil },
			refuse: p.gateway.refuse,
			turn: func(ctx context.Context, past bool) (func(), error) {
				done, err := p.gateway.turn(ctx, past)
				if err == nil {
					time.Sleep(time.Second) // which it takes to draw it
				}
				return done, err
			},
		}
		ask := func(user string) int {
			w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/?at=3", http.NoBody)
			r.Header.Set("User", user)
			h.page(w, r)
			return w.Code
		}
		ended := make(chan int)
		for range 100 {
			go func() { ended <- ask("eve") }()
		}
		synctest.Wait()
		begun := time.Now()
		if code := ask("ada"); code != http.StatusOK || time.Since(begun) > 5*time.Second {
			t.Errorf("another user got %d after %s", code, time.Since(begun))
		}
		for range 100 {
			<-ended
		}
		if len(h.lines.of) != 0 {
			t.Errorf("%d lines stay", len(h.lines.of))
		}
	})
}
