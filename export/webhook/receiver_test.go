package webhook

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"scute.dev/eventlog"
)

const token = "s3cr3t-t0ken"

// receiver is a real HTTP server with a given handler, which records accepted events.
type receiver struct {
	*httptest.Server
	mu       sync.Mutex
	received []http.Header
	bodies   []string
	// answer writes the response, and reports whether the event is accepted. n is the number of the request.
	answer  func(n int, w http.ResponseWriter, r *http.Request) bool
	n       int
	arrived chan struct{}
}

func newReceiver(t *testing.T, answer func(n int, w http.ResponseWriter, r *http.Request) bool) *receiver {
	t.Helper()
	r := &receiver{answer: answer, arrived: make(chan struct{}, 1000)}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Server.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, _ := io.ReadAll(request.Body)
	r.mu.Lock()
	r.n++
	n, answer := r.n, r.answer
	r.mu.Unlock()
	if answer != nil && !answer(n, w, request) {
		return
	}
	r.mu.Lock()
	r.received = append(r.received, request.Header.Clone())
	r.bodies = append(r.bodies, string(body))
	r.mu.Unlock()
	r.arrived <- struct{}{}
}

// sequences returns the sequences of the accepted events.
func (r *receiver) sequences() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, h := range r.received {
		out = append(out, h.Get("Ce-Sequence"))
	}
	return out
}

// waitForEvents waits until the receiver has accepted n events.
func (r *receiver) waitForEvents(ctx context.Context, t *testing.T, n int) {
	t.Helper()
	for {
		if len(r.sequences()) >= n {
			return
		}
		select {
		case <-r.arrived:
		case <-ctx.Done():
			t.Fatalf("the receiver accepted %v, want %d events", r.sequences(), n)
		}
	}
}

// waitForEvent waits until the receiver has accepted an event, beside any others.
func (r *receiver) waitForEvent(ctx context.Context, t *testing.T, sequence string) {
	t.Helper()
	for took := r.sequences(); !slices.Contains(took, sequence); took = r.sequences() {
		r.waitForEvents(ctx, t, len(took)+1)
	}
}

// secretWith returns a folder with a token.
func secretWith(t *testing.T, token string) Secret {
	t.Helper()
	dir := t.TempDir()
	write(t, dir, token)
	return Secret(dir)
}

func write(t *testing.T, dir, token string) {
	t.Helper()
	writeFile(t, Secret(dir), tokenFile, token+"\n")
}

func writeFile(t *testing.T, s Secret, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(string(s), name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func newSink(t *testing.T, url string, secret Secret) *Sink {
	t.Helper()
	client, err := secret.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.CloseIdleConnections)
	return &Sink{URL: url, Secret: secret, Client: client, InitialInterval: time.Millisecond, MaxInterval: 20 * time.Millisecond}
}

func event(n int) eventlog.CloudEvent {
	return eventlog.CloudEvent{
		SpecVersion: "1.0", ID: fmt.Sprintf("c/%d", n), Source: "scute.dev/move/fleet_2fprod", Type: "dev.scute.move.tested.v1",
		Subject: `fleet/"prod" é`, Time: time.Date(2026, 11, 22, 10, 0, 0, 5, time.UTC), DataContentType: "application/json",
		Actor: "user/jo", Sequence: fmt.Sprint(n), LogID: "1e6fbda", Data: []byte(`{"n":1}`),
	}
}

// serveOn listens on an address that was in use before.
func serveOn(t *testing.T, address string, handler http.Handler) *http.Server {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	srv := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute}
	go func() { _ = srv.Serve(l) }()
	t.Cleanup(func() { _ = srv.Close() })
	return srv
}
