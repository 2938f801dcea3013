package web

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// bubble serves a handler to connections in memory, with a clock that waits for nobody.
func bubble(t *testing.T, p *place, fn func(t *testing.T, dial func() net.Conn)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		pipes := make(pipes)
		ctx, stop := context.WithCancel(t.Context())
		server := &http.Server{Handler: p.gateway, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
		ended := make(chan error)
		go func() { ended <- server.Serve(pipes) }()
		fn(t, func() net.Conn {
			ours, theirs := net.Pipe()
			pipes <- theirs
			return ours
		})
		stop()
		_ = server.Close()
		<-ended
	})
}

// followAs asks for what changes of the first page.
func followAs(t *testing.T, c net.Conn, header string) *bufio.Reader {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET /live/ HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n%s\r\n\r\n", host, header); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

// expect reads up to a line with a text.
func expect(t *testing.T, r *bufio.Reader, text string) {
	t.Helper()
	if err := until(r, text); err != nil {
		t.Fatalf("waiting for %q: %v", text, err)
	}
}
