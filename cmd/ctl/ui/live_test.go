package ui

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/ui/feed"
	"scute.dev/ui/page"
	"scute.dev/ui/uitest"
)

// records returns the commits of a saved history.
func records(t *testing.T) (all []eventlog.Record) {
	t.Helper()
	log := logtest.Open(t)
	uitest.Histories(t, log, "../../..", "decided-to-retry")
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error { all = append(all, r); return nil }); err != nil {
		t.Fatal(err)
	}
	return all
}

// serveFeed serves a feed to in-memory connections, and returns a function that opens one.
func serveFeed(t *testing.T, f *feed.Feed) (dial func() net.Conn) {
	t.Helper()
	site, err := page.New(f, &kit.Kit{Env: &cli.Env{Name: "scutectl", Now: time.Now}, Flags: connect.New()}, "logs")
	if err != nil {
		t.Fatal(err)
	}
	handler, err := newHandler(site, f, nil, token, host)
	if err != nil {
		t.Fatal(err)
	}
	pipes := make(pipeListener)
	ctx, stop := context.WithCancel(t.Context())
	server := &http.Server{Handler: handler, ReadHeaderTimeout: time.Minute, BaseContext: func(net.Listener) context.Context { return ctx }}
	ended := make(chan error)
	go func() { ended <- server.Serve(pipes) }()
	t.Cleanup(func() {
		stop()
		_ = server.Close()
		<-ended
	})
	return func() net.Conn {
		ours, theirs := net.Pipe()
		pipes <- theirs
		return ours
	}
}

// pipeListener is a listener with in-memory connections, which have no buffer.
type pipeListener chan net.Conn

func (p pipeListener) Accept() (net.Conn, error) {
	c, ok := <-p
	if !ok {
		return nil, net.ErrClosed
	}
	return c, nil
}
func (p pipeListener) Close() error   { close(p); return nil }
func (p pipeListener) Addr() net.Addr { return &net.TCPAddr{} }

// follow requests the changes of the first page.
func follow(t *testing.T, c net.Conn) *bufio.Reader {
	t.Helper()
	if _, err := fmt.Fprintf(c, "GET /live/ HTTP/1.1\r\nHost: %s\r\nCookie: scute-ui-4711=%s\r\n\r\n", host, token); err != nil {
		t.Fatal(err)
	}
	return bufio.NewReader(c)
}

// until reads lines up to the first that contains the text.
func until(r *bufio.Reader, text string) error {
	for {
		line, err := r.ReadString('\n')
		if err != nil || strings.Contains(line, text) {
			return err
		}
	}
}

// TestManyPagesFollowOneLog checks that 200 open pages receive all changes, while a page that reads nothing delays no
// other and is disconnected.
func TestManyPagesFollowOneLog(t *testing.T) {
	all := records(t)
	f := uitest.Feed(t)
	synctest.Test(t, func(t *testing.T) {
		dial := serveFeed(t, f)
		silent := dial()
		beginning := follow(t, silent)
		if err := until(beginning, ": follows"); err != nil {
			t.Fatal(err)
		}
		told := make(chan error)
		for range 200 {
			r := follow(t, dial())
			if err := until(r, ": follows"); err != nil {
				t.Fatal(err)
			}
			go func() { told <- until(r, fmt.Sprintf("id: %d", len(all))) }()
		}
		for _, r := range all {
			if err := f.Apply(r); err != nil {
				t.Fatal(err)
			}
		}
		for range 200 {
			if err := <-told; err != nil {
				t.Error(err)
			}
		}
		time.Sleep(writeTimeout + time.Second) // in fake time, which does not delay the test
		if _, err := io.Copy(io.Discard, beginning); err != nil {
			t.Errorf("the connection that reads nothing was not closed cleanly: %v", err)
		}
	})
}

// TestPagesThatFollowAreBounded checks that the number of followers is limited, and that a closed page makes room for
// another.
func TestPagesThatFollowAreBounded(t *testing.T) {
	f := uitest.Feed(t)
	var stops []func()
	for range feed.MaxReaders {
		_, stop, err := f.Follow()
		if err != nil {
			t.Fatal(err)
		}
		stops = append(stops, stop)
	}
	if _, _, err := f.Follow(); err == nil {
		t.Error("Follow succeeded above the limit")
	}
	stops[0]()
	if _, _, err := f.Follow(); err != nil {
		t.Error(err)
	}
}

// TestAQuietPageStaysOpen checks that the server sends a comment at each interval without events, so that no proxy
// closes the connection.
func TestAQuietPageStaysOpen(t *testing.T) {
	f := uitest.Feed(t)
	synctest.Test(t, func(t *testing.T) {
		c := serveFeed(t, f)()
		defer c.Close()
		open := follow(t, c)
		for range 5 {
			if err := until(open, ": lives"); err != nil {
				t.Fatal(err)
			}
		}
	})
}
