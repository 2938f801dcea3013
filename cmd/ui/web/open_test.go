package web

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"scute.dev/cmd/ui/access"
	"scute.dev/cmd/ui/page"
	"scute.dev/eventlog"
)

// TestOpenPagesByHTTP2 stay open: that is what browsers speak with a server that has a certificate.
func TestOpenPagesByHTTP2(t *testing.T) {
	p := newPlace(t, nil)
	synctest.Test(t, func(t *testing.T) {
		var second http.Protocols
		second.SetUnencryptedHTTP2(true)
		pipes := make(pipes)
		ctx, stop := context.WithCancel(t.Context())
		server := &http.Server{Handler: p.gateway, ReadHeaderTimeout: time.Minute, Protocols: &second, BaseContext: func(net.Listener) context.Context { return ctx }}
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

// take adds a commit about a run of a namespace.
func (p *place) take(t *testing.T, namespace string) {
	t.Helper()
	subject := eventlog.Aggregate{Kind: eventlog.KindRun, ID: namespace + "/nightly/1"}.Subject()
	if err := p.feed.Take(eventlog.NewRecord(p.feed.Commits.Head()+1, time.Now(), subject, nil, []byte("hi"))); err != nil {
		t.Fatal(err)
	}
}

// TestWhatOthersDoIsNotNoticed: an open page gets the same lines at the same times, whether or not others write to the log.
func TestWhatOthersDoIsNotNoticed(t *testing.T) {
	lines := func(others bool) (all []string) {
		p := newPlace(t, nil)
		bubble(t, p, func(t *testing.T, dial func() net.Conn) {
			begun, c := time.Now(), dial()
			open := followAs(t, c, "Authorization: Bearer good")
			expect(t, open, "</main>")
			go func() {
				for range 90 {
					time.Sleep(time.Second)
					if others {
						p.take(t, "other")
					}
				}
				p.take(t, "fleet")
			}()
			for len(all) == 0 || !strings.Contains(all[len(all)-1], "id: ") {
				line, err := open.ReadString('\n')
				if err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(line, ":") || strings.HasPrefix(line, "id: ") {
					all = append(all, fmt.Sprint(time.Since(begun).Round(time.Second), " ", strings.TrimSpace(line)))
				}
			}
			_ = c.Close()
		})
		return all[:len(all)-1] // the sequence differs
	}
	if alone, among := lines(false), lines(true); !slices.Equal(alone, among) || len(alone) != 4 {
		t.Errorf("alone: %q\namong others: %q", alone, among)
	}
}

// TestTheOpenPageOfARun goes with the right to see it, as a list does, and comes again.
func TestTheOpenPageOfARun(t *testing.T) {
	p := newPlace(t, nil)
	bubble(t, p, func(t *testing.T, dial func() net.Conn) {
		c := dial()
		defer c.Close()
		if _, err := fmt.Fprintf(c, "GET /live/run?id=fleet%%2Frolled-back%%2F1 HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer good\r\n\r\n", host); err != nil {
			t.Fatal(err)
		}
		open := bufio.NewReader(c)
		expect(t, open, "<h2")
		p.change(func() { p.may["ada"] = nil })
		expect(t, open, "This cannot be shown")
		p.change(func() { p.may["ada"] = []string{"fleet"} })
		expect(t, open, "<h2")
	})
}

// TestAPageThatPanics lets the next one be drawn.
func TestAPageThatPanics(t *testing.T) {
	p := newPlace(t, nil)
	h := &handler{look: func(*http.Request) (look, error) { return look{site: &page.Site{}}, nil }, turn: p.gateway.turn}
	for range drawings + 1 {
		func() {
			defer func() {
				if recover() == nil {
					t.Error("it did not panic")
				}
			}()
			h.page(httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", http.NoBody))
		}()
	}
	if !p.gateway.present.TryAcquire(drawings) {
		t.Error("the turns are gone")
	}
}

// TestOneUserLeavesRoom: who opens as many pages as one may is refused another, and the others are not.
func TestOneUserLeavesRoom(t *testing.T) {
	p := newPlace(t, func(s *Shared) { s.Reviewer.(*access.Reviewer).Keep = time.Hour })
	bubble(t, p, func(t *testing.T, dial func() net.Conn) {
		asked := func(token string) (net.Conn, string) {
			c := dial()
			first, err := followAs(t, c, "Authorization: Bearer "+token).ReadString('\n')
			if err != nil {
				t.Fatal(err)
			}
			return c, first
		}
		var all []net.Conn
		for range mostOpen {
			c, first := asked("good")
			if all = append(all, c); !strings.Contains(first, "200") {
				t.Fatalf("page %d: %s", len(all), first)
			}
		}
		for token, want := range map[string]string{"good": "503", "all": "200"} {
			c, first := asked(token)
			if all = append(all, c); !strings.Contains(first, want) {
				t.Errorf("one more page of %s: %s, want %s", token, first, want)
			}
		}
		_ = all[0].Close()
		synctest.Wait()
		c, first := asked("good")
		if all = append(all, c); !strings.Contains(first, "200") {
			t.Errorf("when one is closed: %s", first)
		}
		for _, c := range all {
			_ = c.Close()
		}
	})
}
