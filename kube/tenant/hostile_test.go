package tenant_test

import (
	"compress/zlib"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"scute.dev/kube/tenant"
)

const (
	// maxSent is the maximum that a server can send before its connection ends: less than a MiB is
	// read, and the sockets of both sides buffer as much as the kernel allows.
	maxSent = 128 << 20
	// serverBytes is the number of bytes that a server sends, many times more than most.
	serverBytes = 2 << 30
)

// TestRedirect checks that redirects are not followed, and that the response of their location is not shown.
func TestRedirect(t *testing.T) {
	var asked atomic.Int32
	inner := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		fmt.Fprint(w, "of the metadata service")
	}))
	defer inner.Close()
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, inner.URL+"/latest/meta-data", http.StatusFound)
	}))
	defer api.Close()
	for way, ask := range requestFuncs(clusterAt(t, api.URL)) {
		if err := ask(withTimeout(t, time.Minute)); err == nil || err.Error() != "it redirects (HTTP 302 Found), which is not followed" {
			t.Errorf("request %s: %v, want a redirect error", way, err)
		}
	}
	if asked.Load() > 0 {
		t.Errorf("the redirect was followed %d times", asked.Load())
	}
}

// TestRefusal checks that only messages of an API server or a kubelet are shown of the body of an error.
func TestRefusal(t *testing.T) {
	var body string
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, body)
	}))
	defer api.Close()
	c := clusterAt(t, api.URL)
	for said, want := range map[string]string{
		`{"kind":"Status","message":"pods \"etcd-a\" not found"}`:     `pods "etcd-a" not found`,
		"error dialing backend: \x1b[2Jdial tcp\n10.0.0.7: refused":   "error dialing backend: [2Jdial tcp 10.0.0.7: refused",
		`{"AccessKeyId":"AKIAEXAMPLE","SecretAccessKey":"wJalrXUtn"}`: "HTTP 500 Internal Server Error",
		"<html>an internal page</html>":                               "HTTP 500 Internal Server Error",
		" ":                                                           "HTTP 500 Internal Server Error",
		`"a string"`:                                                  "HTTP 500 Internal Server Error",
	} {
		body = said
		for way, ask := range requestFuncs(c) {
			if err := ask(withTimeout(t, time.Minute)); err == nil || err.Error() != want {
				t.Errorf("%s: body %.60q: %.300v", way, said, err)
			}
		}
	}
	body = strings.Repeat("no ", 100_000)
	for way, ask := range requestFuncs(c) {
		if err := ask(withTimeout(t, time.Minute)); err == nil || !strings.HasPrefix(err.Error(), "no no") || len(err.Error()) > 1010 {
			t.Errorf("%s: long body: %.300v", way, err)
		}
	}
}

// TestEndless checks that an endless response uses little memory, ends at the deadline, and leaves nothing in memory.
func TestEndless(t *testing.T) {
	defer goleak.VerifyNone(t)
	line := "X-Y: " + strings.Repeat("z", 1000) + "\r\n"
	for name, say := range map[string]func(net.Conn) int{
		"headers": func(conn net.Conn) int { return flood(conn, "HTTP/1.1 200 yes\r\n"+line) },
		"headers to spdy": func(conn net.Conn) int {
			_, _ = io.WriteString(conn, "HTTP/1.1 101 yes\r\n")
			return flood(conn, line)
		},
		"one header": func(conn net.Conn) int {
			_, _ = io.WriteString(conn, "HTTP/1.1 500 no\r\nX: ")
			return flood(conn, strings.Repeat("x", 1000))
		},
		"informational": func(conn net.Conn) int { return flood(conn, "HTTP/1.1 103 hints\r\n"+line+"\r\n") },
		"body": func(conn net.Conn) int {
			_, _ = io.WriteString(conn, "HTTP/1.1 500 no\r\n\r\n")
			return flood(conn, strings.Repeat("x", 1000))
		},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			c := serveRaw(t, func(conn net.Conn) { sent.Add(int64(say(conn))) })
			for way, ask := range requestFuncs(c) {
				begun := time.Now()
				err := ask(withTimeout(t, time.Minute))
				if err == nil || errors.Is(err, context.DeadlineExceeded) || len(err.Error()) > 2000 {
					t.Errorf("request %s after %s: %.300v", way, time.Since(begun), err)
				}
			}
			if sent.Load() > 6*maxSent {
				t.Errorf("%d MiB were read", sent.Load()>>20)
			}
		})
	}
}

// TestSlow checks that a server that sends nothing, or a byte now and then, does not delay a caller beyond its
// deadline.
func TestSlow(t *testing.T) {
	defer goleak.VerifyNone(t)
	for name, head := range map[string]string{"silent": "", "head": "HTTP/1.1 500 no\r\nX: ", "body": "HTTP/1.1 500 no\r\n\r\n", "stream": "HTTP/1.1 101 yes\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"} {
		t.Run(name, func(t *testing.T) {
			c := serveRaw(t, func(conn net.Conn) {
				_, err := io.WriteString(conn, head)
				for err == nil {
					time.Sleep(20 * time.Millisecond)
					if _, err = io.WriteString(conn, "x"); head == "" {
						_, err = conn.Read(make([]byte, 1)) // until it is closed
					}
				}
			})
			for way, ask := range requestFuncs(c) {
				begun := time.Now()
				if err := ask(withTimeout(t, 300*time.Millisecond)); err == nil || time.Since(begun) > time.Minute {
					t.Errorf("request %s: %v after %s", way, err, time.Since(begun))
				}
			}
		})
	}
}

// TestFrames checks that invalid or excessive SPDY frames end the connection.
func TestFrames(t *testing.T) {
	defer goleak.VerifyNone(t)
	replied := packHeaders(encodeUint32(0), encodeUint32(0), encodeUint32(0))
	reply := func(id uint32) string { return control(2, encodeUint32(id)+replied[id/2]) }
	for name, c := range map[string]struct {
		say  string
		over string // sent repeatedly
		why  string
	}{
		"a long frame":                 {say: encodeUint32(1) + encodeUint32(0xffffff), why: "a frame of 16777215 bytes"},
		"a long control frame":         {say: encodeUint32(0x80030002) + encodeUint32(0xffffff), why: "a frame of 16777215 bytes"},
		"settings":                     {say: control(4, encodeUint32(0xffffffff)), why: "an unexpected frame of kind 4"},
		"unrequested streams":          {over: control(1, encodeUint32(2)+encodeUint32(0)+"\x00\x00"+packHeaders(encodeUint32(0))[0]), why: "an unexpected frame of kind 1"},
		"a header that grows":          {say: control(2, encodeUint32(1)+packHeaders(encodeUint32(1) + encodeUint32(1) + "a" + encodeUint32(100<<20) + strings.Repeat("\x00", 1<<20))[0]), why: "reading a frame"},
		"many headers":                 {say: control(2, encodeUint32(1)+packHeaders(encodeUint32(1 << 30))[0]), why: "reading a frame"},
		"pings":                        {over: control(6, encodeUint32(2)), why: "it sends too much"},
		"data of no stream":            {say: reply(1), over: encodeUint32(9) + encodeUint32(1000) + strings.Repeat("x", 1000), why: "it sends too much"},
		"data on the stream of errors": {say: reply(1) + reply(3) + reply(5), over: encodeUint32(1) + encodeUint32(1000) + strings.Repeat("x", 1000), why: "it sends too much"},
		"a reset":                      {say: control(3, encodeUint32(1)+encodeUint32(3)), why: "the stream for error was refused"},
		"away":                         {say: control(7, encodeUint32(0)+encodeUint32(0)), why: "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			var sent atomic.Int64
			server := serveRaw(t, func(conn net.Conn) {
				ended := make(chan struct{})
				go func() { _, _ = io.Copy(io.Discard, conn); close(ended) }()
				_, _ = io.WriteString(conn, "HTTP/1.1 101 yes\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n"+c.say)
				if c.over != "" {
					sent.Add(int64(flood(conn, c.over)))
				}
				<-ended
			})
			_, _, err := server.Exec(withTimeout(t, time.Minute), "kube-system", "etcd-a", "etcd")
			if err == nil || !strings.Contains(err.Error(), c.why) || strings.Contains(c.why, "too much") && !errors.Is(err, tenant.ErrTooLarge) {
				t.Errorf("Exec = %v, want %q", err, c.why)
			}
			if sent.Load() > maxSent {
				t.Errorf("%d MiB were read", sent.Load()>>20)
			}
		})
	}
}

func encodeUint32(n uint32) string { return string(binary.BigEndian.AppendUint32(nil, n)) }

// control returns a control frame of version 3.
func control(kind uint32, payload string) string {
	return encodeUint32(0x80030000|kind) + encodeUint32(uint32(len(payload))) + payload //nolint:gosec // small
}

// packHeaders returns blocks of headers, compressed as on one connection. Their dictionary is not that of the protocol,
// which is not necessary.
func packHeaders(blocks ...string) []string {
	var b strings.Builder
	w, all := zlib.NewWriter(&b), make([]string, len(blocks))
	for i, block := range blocks {
		from := b.Len()
		_, _ = io.WriteString(w, block)
		_ = w.Flush()
		all[i] = b.String()[from:]
	}
	return all
}
