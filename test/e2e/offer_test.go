package e2e

import (
	"context"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestHolderWithoutTheLog checks that a daemon that holds the Lease but can no longer reach the NATS server loses the
// Lease to a daemon that can, and then exits.
func TestHolderWithoutTheLog(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	n := startNATS(t)
	harness.Must(t, shared.blue.ForgetLog(ctx))
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: n.url(), TLS: eventlog.TLSFiles{CA: n.cert, Cert: n.cert, Key: n.key}, Create: true})
	harness.Must(t, err)
	defer log.Close()
	between := newLine(t, n.running.Addr().String())
	first := n.run(t, shared.blue, scuted.DaemonOptions{Args: []string{"--nats-url", "tls://" + between.listener.Addr().String()}})
	waitLeader(ctx, t)
	before := holder(ctx, t)
	second := n.replica(t, "")
	between.cut()
	for now := before; now == before || now == ""; now = holder(ctx, t) {
		select {
		case <-ctx.Done():
			t.Fatalf("a daemon without the log still holds the Lease: see %s", first.Log())
		case <-time.After(time.Second):
		}
	}
	select {
	case <-first.Done():
	case <-ctx.Done():
		t.Fatalf("a daemon that lost the Lease still runs: see %s", first.Log())
	}
	harness.Must(t, second.Exited())
}

// holder returns the holder of the Lease, or "".
func holder(ctx context.Context, t *testing.T) string {
	t.Helper()
	lease := &coordinationv1.Lease{}
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: trust.LeaseNamespace, Name: trust.LeaseName}, lease))
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// line forwards connections until it is cut.
type line struct {
	listener net.Listener
	mu       sync.Mutex
	open     []net.Conn
}

func newLine(t *testing.T, to string) *line {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	l := &line{listener: listener}
	t.Cleanup(l.cut)
	go func() {
		for {
			from, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := new(net.Dialer).DialContext(t.Context(), "tcp", to)
			if err != nil {
				_ = from.Close()
				continue
			}
			l.mu.Lock()
			l.open = append(l.open, from, server)
			l.mu.Unlock()
			go func() { _, _ = io.Copy(server, from) }()
			go func() { _, _ = io.Copy(from, server) }()
		}
	}()
	return l
}

func (l *line) cut() {
	_ = l.listener.Close()
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, c := range l.open {
		_ = c.Close()
	}
}
