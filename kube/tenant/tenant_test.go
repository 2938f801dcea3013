package tenant_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/exec"

	"scute.dev/kube/guard"
	"scute.dev/kube/tenant"
)

// TestForward checks that the port of a pod is reached.
func TestForward(t *testing.T) {
	c := servePod(t)
	conn, err := c.Forward(withTimeout(t, time.Minute), "kube-system", "etcd-a", 7)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	long := strings.Repeat("x", 100_000) + "\n" // in several frames
	said := bufio.NewReader(conn)
	for _, line := range []string{"one\n", long, "two\n"} {
		if _, err := io.WriteString(conn, line); err != nil {
			t.Fatal(err)
		}
		if got, err := said.ReadString('\n'); err != nil || got != line {
			t.Fatalf("read %d bytes, error %v", len(got), err)
		}
	}
	silent, err := c.Forward(withTimeout(t, time.Minute), "kube-system", "etcd-a", 8)
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	if _, err := silent.Read(make([]byte, 1)); err == nil || err.Error() != "nothing listens [2Jthere" {
		t.Errorf("error of the kubelet = %v", err)
	}
}

// TestExec checks the output of a command and its exit code.
func TestExec(t *testing.T) {
	status := func(command []string) string {
		if len(command) == 0 {
			return `{"status":"Success"}`
		}
		return fmt.Sprintf(`{"status":"Failure","reason":"NonZeroExitCode","details":{"causes":[{"reason":"ExitCode","message":"%d"}]}}`, len(command))
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		runCommand(w, r, status)
	}))
	defer server.Close()
	c := clusterAt(t, server.URL)
	stdout, stderr, err := c.Exec(withTimeout(t, time.Minute), "kube-system", "etcd-a", "etcd", "etcdctl", "a & b")
	var exit exec.CodeExitError
	if string(stdout) != "etcdctl a & b" || len(stderr) != 64<<10 || !errors.As(err, &exit) || exit.Code != 2 {
		t.Errorf("stdout %q, stderr %d bytes, error %v", stdout, len(stderr), err)
	}
	if _, _, err := c.Exec(withTimeout(t, time.Minute), "kube-system", "etcd-a", "etcd"); err != nil {
		t.Errorf("successful command: %v", err)
	}
}

// TestAnswers checks that an API server that denies a request counts as available, and one with a server error does
// not.
func TestAnswers(t *testing.T) {
	for code, want := range map[int]bool{101: false, 200: true, 401: true, 404: true, 301: false, 500: false, 503: false} {
		server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }))
		if err := clusterAt(t, server.URL).Ping(withTimeout(t, time.Minute)); (err == nil) != want {
			t.Errorf("status %d: %v", code, err)
		}
		server.Close()
	}
}

// TestAddresses checks that neither an API server nor an etcd member can lead to addresses that are denied to tenants.
func TestAddresses(t *testing.T) {
	var none *guard.Guard
	d := tenant.New(none.AllowPrivate())
	for _, host := range []string{
		"127.0.0.1", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "[::ffff:169.254.169.254]", "[64:ff9b::a9fe:a9fe]",
		"100.100.100.200", "168.63.129.16", "[fd00:ec2::254]", "255.255.255.255", "[fe80::1]", "224.0.0.1",
	} {
		c, err := d.Cluster("fleet/prod", &rest.Config{Host: "https://" + host})
		if err != nil {
			t.Fatal(err)
		}
		ways := requestFuncs(c)
		ways["dial"] = func(ctx context.Context) error { _, err := c.Dial(ctx, host+":2379"); return err }
		for way, ask := range ways {
			if err := ask(withTimeout(t, time.Minute)); !errors.Is(err, guard.ErrDenied) {
				t.Errorf("%s, %s: %v, want ErrDenied", host, way, err)
			}
		}
	}
}

// TestPlaces checks that the connections to one cluster are limited, that other clusters have their own limit, and that
// closed connections are released.
func TestPlaces(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d := dialer(t)
	one, err := d.Cluster("one", &rest.Config{Host: "https://one"})
	if err != nil {
		t.Fatal(err)
	}
	another, err := d.Cluster("another", &rest.Config{Host: "https://another"})
	if err != nil {
		t.Fatal(err)
	}
	holding, letGo := context.WithTimeout(t.Context(), time.Minute)
	defer letGo()
	address, opened := listener.Addr().String(), 0
	for err == nil {
		if _, err = one.Dial(holding, address); err == nil {
			opened++
		}
		if opened == 20 {
			_, err = one.Dial(withTimeout(t, 50*time.Millisecond), address)
		}
	}
	if opened != 20 || !strings.Contains(err.Error(), "20 connections to the cluster are open") {
		t.Errorf("%d connections were opened: %v", opened, err)
	}
	conn, err := another.Dial(holding, address)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
	letGo()
	for range 20 {
		if _, err := one.Dial(withTimeout(t, time.Minute), address); err != nil {
			t.Errorf("a connection was not released: %v", err)
		}
	}
}

// TestPlacesOfNamespaces checks that unresponsive clusters of one namespace, however many, do not block those of
// another.
func TestPlacesOfNamespaces(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	d, address := dialer(t), listener.Addr().String()
	holding, letGo := context.WithTimeout(t.Context(), time.Minute)
	defer letGo()
	var opened atomic.Int32
	var dials sync.WaitGroup
	for i := range 10 {
		c, err := d.Cluster(fmt.Sprintf("hostile/%d", i), &rest.Config{Host: "https://hostile"})
		if err != nil {
			t.Fatal(err)
		}
		for range 20 {
			dials.Go(func() {
				if _, err := c.Dial(holding, address); err == nil {
					opened.Add(1)
				}
			})
		}
	}
	for opened.Load() < 80 {
		time.Sleep(time.Millisecond)
	}
	prod, err := d.Cluster("fleet/prod", &rest.Config{Host: "https://prod"})
	if err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if _, err := prod.Dial(holding, address); err != nil {
			t.Fatal(err)
		}
	}
	if n := opened.Load(); n != 80 {
		t.Errorf("one namespace has %d connections, want 80", n)
	}
	letGo()
	dials.Wait()
	for range 20 {
		if _, err := prod.Dial(withTimeout(t, time.Minute), address); err != nil {
			t.Errorf("a connection was not released: %v", err)
		}
	}
}

// TestDeadline checks that no connection is opened without a deadline.
func TestDeadline(t *testing.T) {
	c := clusterAt(t, "https://127.0.0.1:1")
	for name, ask := range requestFuncs(c) {
		if err := ask(t.Context()); err == nil || !strings.Contains(err.Error(), "needs a deadline") {
			t.Errorf("%s: %v, want an error about the deadline", name, err)
		}
	}
}
