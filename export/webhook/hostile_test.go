package webhook

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestReceiverThatSendsTheRequestBack checks that no error quotes the response of a receiver, which may contain the
// request.
func TestReceiverThatSendsTheRequestBack(t *testing.T) {
	for name, before := range map[string]string{
		"instead of an answer": "", "as a status": "HTTP/1.1 ", "as a header": "HTTP/1.1 200 OK\r\n",
	} {
		t.Run(name, func(t *testing.T) {
			l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan struct{})
			t.Cleanup(func() { _ = l.Close(); <-done })
			go func() {
				defer close(done)
				for {
					c, err := l.Accept()
					if err != nil {
						return
					}
					_, _ = io.WriteString(c, before)
					line, _ := bufio.NewReader(c).ReadString('\n')
					_, _ = io.WriteString(c, line+"\r\n")
					_ = c.Close()
				}
			}()
			s := newSink(t, "http://"+l.Addr().String()+"/hidden?code=hidden", secretWith(t, token))
			s.MaxElapsedTime = time.Millisecond
			if err := s.Send(t.Context(), event(1)); err == nil || strings.Contains(err.Error(), "hidden") {
				t.Errorf("Send = %v, want an error without the request", err)
			}
		})
	}
}

// roundTripperFunc is an http.RoundTripper in a bubble of package synctest.
type roundTripperFunc func(r *http.Request) *http.Response

func (a roundTripperFunc) RoundTrip(r *http.Request) (*http.Response, error) { return a(r), nil }

// TestRetryAfterIsHeededWithoutPatience checks that a requested delay is kept even if it exceeds the time limit of an
// event.
func TestRetryAfterIsHeededWithoutPatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var posts []time.Time
		s := &Sink{URL: "http://receiver", Client: &http.Client{Transport: roundTripperFunc(func(*http.Request) *http.Response {
			posts = append(posts, time.Now())
			return &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"400"}}, Body: http.NoBody}
		})}}
		for range 3 {
			if err := s.Send(t.Context(), event(1)); !errors.Is(err, errUnavailable) {
				t.Error(err)
			}
		}
		for i := range posts[1:] {
			if waited := posts[i+1].Sub(posts[i]); waited < 400*time.Second {
				t.Errorf("request %d came after %s", i+2, waited)
			}
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := s.Send(ctx, event(1)); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Send = %v, want DeadlineExceeded", err)
		}
	})
}

// endless is a body that ends only with its request.
type endless struct{ ctx context.Context } //nolint:containedctx // of the request

func (e endless) Read([]byte) (int, error) { <-e.ctx.Done(); return 0, e.ctx.Err() }
func (e endless) Close() error             { return nil }

// TestAnswerThatDoesNotEnd checks that Send does not wait for the body of a successful response.
func TestAnswerThatDoesNotEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &Sink{URL: "http://receiver", Client: &http.Client{Transport: roundTripperFunc(func(r *http.Request) *http.Response {
			return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: endless{r.Context()}}
		})}}
		start := time.Now()
		if err := s.Send(t.Context(), event(1)); err != nil || time.Since(start) > time.Second {
			t.Errorf("Send took %s: %v", time.Since(start), err)
		}
	})
}
