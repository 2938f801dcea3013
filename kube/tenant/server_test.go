package tenant_test

import (
	"bufio"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"scute.dev/kube/guard"
	"scute.dev/kube/tenant"
)

// dialer returns a dialer for servers on this machine.
func dialer(t *testing.T) *tenant.Dialer {
	t.Helper()
	g, err := guard.New([]string{"127.0.0.1"})
	if err != nil {
		t.Fatal(err)
	}
	return tenant.New(g)
}

func clusterAt(t *testing.T, url string) *tenant.Cluster {
	t.Helper()
	c, err := dialer(t).Cluster("fleet/prod", &rest.Config{Host: url, BearerToken: "of-the-kubeconfig", TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// requestFuncs returns the kinds of requests to an API server.
func requestFuncs(c *tenant.Cluster) map[string]func(context.Context) error {
	return map[string]func(context.Context) error{
		"answers": c.Ping,
		"forward": func(ctx context.Context) error {
			conn, err := c.Forward(ctx, "kube-system", "etcd-a", 2379)
			if err != nil {
				return err
			}
			defer conn.Close()
			_, err = io.ReadAll(conn)
			return err
		},
		"exec": func(ctx context.Context) error {
			_, _, err := c.Exec(ctx, "kube-system", "etcd-a", "etcd", "etcdctl", "version")
			return err
		},
	}
}

func withTimeout(t *testing.T, limit time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	t.Cleanup(cancel)
	return ctx
}

// serveRaw returns a cluster whose server calls say with the connection after the header of a request.
func serveRaw(t *testing.T, say func(conn net.Conn)) *tenant.Cluster {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		taken, ok := w.(http.Hijacker)
		if !ok {
			t.Error("the connection cannot be hijacked")
			return
		}
		conn, _, err := taken.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		say(conn)
	}))
	t.Cleanup(server.Close)
	return clusterAt(t, server.URL)
}

// flood writes until the client stops reading, and returns the number of bytes written.
func flood(w io.Writer, chunk string) (written int) {
	for written < serverBytes {
		n, err := io.WriteString(w, chunk)
		written += n
		if err != nil {
			break
		}
	}
	return written
}

// servePod returns a cluster with a pod that echoes data on port 7.
func servePod(t *testing.T) *tenant.Cluster {
	t.Helper()
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer of-the-kubeconfig" || !strings.HasSuffix(r.URL.Path, "/pods/etcd-a/portforward") {
			http.Error(w, "who are you?", http.StatusUnauthorized)
			return
		}
		opened := make(chan httpstream.Stream, 2)
		handler := func(s httpstream.Stream, _ <-chan struct{}) error { opened <- s; return nil }
		if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
			return
		}
		if conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, handler); conn != nil {
			echo(conn, opened)
		}
	}))
	t.Cleanup(server.Close)
	return clusterAt(t, server.URL)
}

// runCommand simulates a command over SPDY, which prints its arguments, and much to stderr.
func runCommand(w http.ResponseWriter, r *http.Request, status func(command []string) string) {
	if _, err := httpstream.Handshake(r, w, []string{"v4.channel.k8s.io"}); err != nil {
		return
	}
	opened := make(chan httpstream.Stream, 3)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error { opened <- s; return nil })
	if conn == nil {
		return
	}
	defer conn.Close()
	command := r.URL.Query()["command"]
	said := map[string]string{
		corev1.StreamTypeStdout: strings.Join(command, " "), corev1.StreamTypeStderr: strings.Repeat("y", 100_000), corev1.StreamTypeError: status(command),
	}
	for _, s := range streams(conn, opened, len(said)) {
		_, _ = io.WriteString(s, said[s.Headers().Get(corev1.StreamType)])
		s.Close()
	}
	<-conn.CloseChan() // the client ends it
}

// streams returns the first streams that the client opens, by their types, or nil if it disconnects before.
func streams(conn httpstream.Connection, opened <-chan httpstream.Stream, many int) map[string]httpstream.Stream {
	found := make(map[string]httpstream.Stream, many)
	for len(found) < many {
		select {
		case s := <-opened:
			found[s.Headers().Get(corev1.StreamType)] = s
		case <-conn.CloseChan():
			return nil
		}
	}
	return found
}

// echo serves one port-forward.
func echo(conn httpstream.Connection, opened <-chan httpstream.Stream) {
	defer conn.Close()
	found := streams(conn, opened, 2)
	data, complaints := found[corev1.StreamTypeData], found[corev1.StreamTypeError]
	if data == nil || complaints == nil {
		return
	}
	if data.Headers().Get(corev1.PortHeader) != "7" {
		_, _ = io.WriteString(complaints, "nothing listens\n\x1b[2Jthere")
		complaints.Close()
		<-conn.CloseChan()
		return
	}
	lines := bufio.NewReader(data)
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		_, _ = io.WriteString(data, line)
	}
}
