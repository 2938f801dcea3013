package webhook

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// TestEventIsACloudEvent checks that the request follows the binary mode of the HTTP binding of CloudEvents.
func TestEventIsACloudEvent(t *testing.T) {
	r := newReceiver(t, nil)
	if err := newSink(t, r.URL, secretWith(t, token)).Send(t.Context(), event(7)); err != nil {
		t.Fatal(err)
	}
	got := r.received[0]
	for _, name := range []string{"Accept-Encoding", "Content-Length"} {
		got.Del(name)
	}
	want := http.Header{
		"Authorization": {"Bearer " + token}, "Content-Type": {"application/json"}, "User-Agent": {"scute"},
		"Ce-Specversion": {"1.0"}, "Ce-Id": {"c/7"}, "Ce-Source": {"scute.dev/move/fleet_2fprod"}, "Ce-Type": {"dev.scute.move.tested.v1"},
		"Ce-Subject": {"fleet/%22prod%22%20%C3%A9"}, "Ce-Time": {"2026-11-22T10:00:00.000000005Z"}, "Ce-Actor": {"user/jo"},
		"Ce-Sequence": {"7"}, "Ce-Logid": {"1e6fbda"},
	}
	if diff := cmp.Diff(want, got); diff != "" || r.bodies[0] != `{"n":1}` {
		t.Errorf("headers (-want +got):\n%s\nbody %s", diff, r.bodies[0])
	}
}

// TestAnswers checks that temporary errors are retried, and others returned at once.
func TestAnswers(t *testing.T) {
	for _, c := range []struct {
		code  int
		again bool
	}{
		{http.StatusInternalServerError, true},
		{http.StatusServiceUnavailable, true},
		{http.StatusTooManyRequests, true},
		{http.StatusRequestTimeout, true},
		{http.StatusBadRequest, false},
		{http.StatusUnauthorized, false},
		{http.StatusNotFound, false},
		{http.StatusRequestEntityTooLarge, false},
		{http.StatusFound, false}, // events are never posted to another URL than the configured one
	} {
		t.Run(http.StatusText(c.code), func(t *testing.T) {
			r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) bool {
				if n > 3 {
					return true
				}
				w.Header().Set("Location", "/elsewhere")
				http.Error(w, "you sent "+token, c.code)
				return false
			})
			err := newSink(t, r.URL+"?code=hidden", secretWith(t, token)).Send(t.Context(), event(1))
			if c.again && (err != nil || r.n != 4) || !c.again && (!errors.Is(err, errRejected) || r.n != 1) {
				t.Errorf("%d requests: %v", r.n, err)
			}
			if err != nil && (strings.Contains(err.Error(), token) || strings.Contains(err.Error(), "hidden")) {
				t.Errorf("the error contains a secret: %v", err)
			}
		})
	}
}

// TestRetryAfterIsHeeded checks that a requested delay is kept.
func TestRetryAfterIsHeeded(t *testing.T) {
	r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n == 1 {
			w.Header().Set("Retry-After", "1")
			w.WriteHeader(http.StatusTooManyRequests)
		}
		return n > 1
	})
	s := newSink(t, r.URL, "")
	var waited time.Duration
	s.OnRetry = func(_ error, wait time.Duration) { waited += wait }
	if err := s.Send(t.Context(), event(1)); err != nil || waited < time.Second {
		t.Errorf("waited %s: %v", waited, err)
	}
	now := time.Date(2026, 11, 22, 10, 0, 0, 0, time.UTC)
	for value, want := range map[string]time.Duration{
		"": 0, "soon": 0, "-1": 0, "7": 7 * time.Second, "86400": maxRetryAfter,
		"Sun, 22 Nov 2026 10:00:30 GMT": 30 * time.Second, "Sun, 22 Nov 2026 09:00:00 GMT": 0,
	} {
		if got := retryAfter(value, now); got != want {
			t.Errorf("retryAfter(%q) = %s, want %s", value, got, want)
		}
	}
}

// TestPatienceEnds checks that the attempts of one event are limited, and that the error has the cause without the URL.
func TestPatienceEnds(t *testing.T) {
	r := newReceiver(t, nil)
	r.Server.Close()
	s := newSink(t, r.URL+"/hook?code=hidden", "")
	s.MaxElapsedTime = 50 * time.Millisecond
	err := s.Send(t.Context(), event(1))
	if !errors.Is(err, errUnavailable) || !strings.Contains(err.Error(), "connection refused") || strings.Contains(err.Error(), "hidden") {
		t.Errorf("Send = %v, want errUnavailable", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Send(ctx, event(1)); errors.Is(err, errUnavailable) || !errors.Is(err, context.Canceled) {
		t.Errorf("Send with a canceled context = %v", err)
	}
}

// TestReceiverThatHangs checks that a request without a response ends, and is repeated.
func TestReceiverThatHangs(t *testing.T) {
	r := newReceiver(t, func(n int, _ http.ResponseWriter, r *http.Request) bool {
		if n == 1 {
			<-r.Context().Done() // until the client closes the connection
			return false
		}
		return true
	})
	s := newSink(t, r.URL, "")
	s.Client.Timeout = 300 * time.Millisecond
	if err := s.Send(t.Context(), event(1)); err != nil {
		t.Error(err)
	}
}

// TestSecretOfNothing checks that each file may be missing, but must be valid if it exists.
func TestSecretOfNothing(t *testing.T) {
	empty := Secret(t.TempDir())
	if got, err := empty.token(); got != "" || err != nil {
		t.Errorf("token = %q, error %v", got, err)
	}
	bad := Secret(t.TempDir())
	writeFile(t, bad, caFile, "no certificate")
	if _, err := bad.NewClient(); err == nil || !strings.Contains(err.Error(), "ca.crt") {
		t.Error(err)
	}
	writeFile(t, bad, tokenFile, "two\nlines")
	if got, err := bad.token(); err == nil || !strings.Contains(err.Error(), "must be one line") || strings.Contains(err.Error(), "two") {
		t.Errorf("token = %q, error %v, want an error without the content", got, err)
	}
}
