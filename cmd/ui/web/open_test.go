package web

import (
	"bufio"
	"context"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// TestOpenPagesByHTTP2 stay open: that is what browsers speak with a server that has a certificate.
func TestOpenPagesByHTTP2(t *testing.T) {
	p := newPlace(t, nil)
	synctest.Test(t, func(t *testing.T) {
		var second http.Protocols
		second.SetUnencryptedHTTP2(true)
		pipes := make(pipes)
		ctx, stop := context.WithCancel(t.Context())
		server := &http.Server{Handler: p.door, ReadHeaderTimeout: time.Minute, Protocols: &second, BaseContext: func(net.Listener) context.Context { return ctx }}
		ended := make(chan error)
		go func() { ended <- server.Serve(pipes) }()
		browser := &http.Transport{Protocols: &second, DialContext: func(context.Context, string, string) (net.Conn, error) {
			ours, theirs := net.Pipe()
			pipes <- theirs
			return ours, nil
		}}
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+host+"/live/", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Authorization", "Bearer good")
		response, err := browser.RoundTrip(request)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewReader(response.Body)
		expect(t, lines, "rolled-back")
		for range 5 {
			expect(t, lines, ": lives")
		}
		if response.ProtoMajor != 2 {
			t.Errorf("by %s", response.Proto)
		}
		stop()
		_ = response.Body.Close()
		browser.CloseIdleConnections()
		_ = server.Close()
		<-ended
	})
}
