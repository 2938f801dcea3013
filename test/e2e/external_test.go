package e2e

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	coordinationv1 "k8s.io/api/coordination/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/internal/trust"
	"scute.dev/mover"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestExternalLog runs several daemons on one NATS server. The leader is killed during a move. Later the server is
// restarted, and a leader is stopped for longer than its lease lasts and then continued.
func TestExternalLog(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	killed, frozen := testbed.Tiny("external-killed", "tiny"), testbed.Tiny("external-frozen", "tiny")
	for _, c := range []testbed.Cluster{killed, frozen} {
		_, err := shared.blue.Side.CreateCluster(ctx, c)
		harness.Must(t, err)
	}
	for _, c := range []testbed.Cluster{killed, frozen} {
		harness.Must(t, shared.blue.Side.WaitAvailable(ctx, c.Namespace, c.Name))
		harness.Must(t, shared.blue.PutTarget(ctx, c.Namespace, shared.green))
	}
	n := startNATS(t)
	harness.Must(t, shared.blue.ForgetLog(ctx))
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: n.url(), TLS: eventlog.TLSFiles{CA: n.cert, Cert: n.cert, Key: n.key}, Create: true})
	harness.Must(t, err)
	defer log.Close()

	t.Setenv("SCUTE_FAULT", "after:40:move") // while it creates objects
	first := n.replica(t, shared.programs.Faulty)
	waitLeader(ctx, t)
	// With one call at a time, creating takes longer than stopping the daemon.
	second := n.run(t, shared.blue, scuted.DaemonOptions{Args: []string{"--move-workers", "1"}})
	t.Run("the leader is killed, then NATS is restarted", func(t *testing.T) {
		w, paused := shared.witness(ctx, t), watchPauses(t, shared.blue, killed.Namespace)
		m := scuted.NewMove(killed.Namespace, "killed", shared.green, "tiny")
		harness.Must(t, shared.blue.Create(ctx, m))
		select {
		case <-first.Done():
		case <-ctx.Done():
			t.Fatal("the leader did not exit at its fault point")
		}
		died := time.Now()
		_, err := shared.blue.Wait(ctx, m.Namespace, m.Name, func(m *v1alpha1.Move) bool { return m.Status.Phase == mover.PhaseDeleting || scuted.Over(m) })
		harness.Must(t, err)
		t.Logf("phase Deleting %s after the leader was killed", time.Since(died).Round(time.Second))
		n.restart(t)
		over, err := shared.blue.Wait(ctx, m.Namespace, m.Name, scuted.Over)
		harness.Must(t, err)
		ended(ctx, t, over, w, paused)
		fenced(ctx, t, log, over)
		harness.Must(t, second.Exited())
	})
	third := n.replica(t, "")
	t.Run("the leader is frozen and wakes", func(t *testing.T) {
		w, paused := shared.witness(ctx, t), watchPauses(t, shared.blue, frozen.Namespace)
		m := scuted.NewMove(frozen.Namespace, "frozen", shared.green, "tiny")
		harness.Must(t, shared.blue.Create(ctx, m))
		_, err := shared.blue.Wait(ctx, m.Namespace, m.Name, func(m *v1alpha1.Move) bool { return m.Status.Phase == mover.PhaseCreating || scuted.Over(m) })
		harness.Must(t, err)
		harness.Must(t, syscall.Kill(second.PID(), syscall.SIGSTOP))
		over, err := shared.blue.Wait(ctx, m.Namespace, m.Name, scuted.Over)
		harness.Must(t, err)
		harness.Must(t, syscall.Kill(second.PID(), syscall.SIGCONT))
		select {
		case <-second.Done(): // it lost its lease and exits, so that the pod restarts
		case <-ctx.Done():
			t.Fatalf("the old leader still runs: see %s", second.Log())
		}
		ended(ctx, t, over, w, paused)
		fenced(ctx, t, log, over)
		harness.Must(t, third.Exited())
	})
}

func ended(ctx context.Context, t *testing.T, over *v1alpha1.Move, w *witness, paused *pauses) {
	t.Helper()
	if over.Status.Phase != mover.PhaseSucceeded {
		t.Errorf("phase = %s, want Succeeded: %s", over.Status.Phase, over.Status.Message)
	}
	if left := objects(ctx, t, shared.blue, over.Namespace); len(left) > 0 {
		t.Errorf("objects remain at the source: %v", names(left))
	}
	harness.Must(t, shared.green.Side.WaitAvailable(ctx, over.Namespace, "tiny"))
	untouched(t, objects(ctx, t, shared.green, over.Namespace))
	w.clean(ctx, t)
	paused.none(t)
}

// fenced checks that two daemons drove the move, one after the other, and that the first appended nothing after the
// second's claim.
func fenced(ctx context.Context, t *testing.T, log *eventlog.Log, m *v1alpha1.Move) {
	t.Helper()
	if claims := claimsOf(ctx, t, log, eventlog.Aggregate{Kind: eventlog.KindMove, ID: m.Status.MoveID}); claims != 2 {
		t.Errorf("%d daemons claimed the move, want 2", claims)
	}
}

// claimsOf returns the number of daemons that claimed an aggregate, and checks that none of them appended after the
// next claim.
func claimsOf(ctx context.Context, t *testing.T, log *eventlog.Log, about eventlog.Aggregate) (claims int) {
	t.Helper()
	records, err := log.Read(ctx, about, 0)
	harness.Must(t, err)
	holder := ""
	for _, r := range records {
		events, err := r.Events()
		harness.Must(t, err)
		for _, e := range events {
			if strings.Contains(e.Type, ".claimed.") && e.Actor != holder {
				holder, claims = e.Actor, claims+1
			}
			if strings.HasPrefix(e.Actor, "daemon/") && e.Actor != holder {
				t.Errorf("sequence %d: %s is from %s, after %s claimed %s", r.Seq, e.Type, e.Actor, holder, about.ID)
			}
		}
	}
	return claims
}

// waitLeader waits until a daemon with an external log holds the lease. A daemon with an embedded log that was killed
// earlier in this suite may still be its holder.
func waitLeader(ctx context.Context, t *testing.T) {
	t.Helper()
	lease := &coordinationv1.Lease{}
	for {
		err := shared.blue.Side.Client().Get(ctx, client.ObjectKey{Namespace: trust.LeaseNamespace, Name: trust.LeaseName}, lease)
		if h := lease.Spec.HolderIdentity; err == nil && h != nil && *h != "" && !strings.HasPrefix(*h, "log-") {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("no daemon acquired the lease: %v", ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// natsServer is a NATS server with JetStream and mutual TLS, as an operator would run it.
type natsServer struct {
	options   server.Options
	running   *server.Server
	cert, key string // files: one certificate for the server, the clients and the authority
}

func startNATS(t *testing.T) *natsServer {
	t.Helper()
	_, port, err := net.SplitHostPort(ports.AddressForTest(t))
	harness.Must(t, err)
	n := &natsServer{options: server.Options{
		ServerName: "nats", Host: "127.0.0.1", JetStream: true, StoreDir: t.TempDir(), JetStreamMaxStore: 1 << 40,
		NoSigs: true, NoLog: true, TLS: true, TLSVerify: true, TLSTimeout: 5,
	}}
	n.options.Port, err = strconv.Atoi(port)
	harness.Must(t, err)
	n.certify(t)
	n.start(t)
	t.Cleanup(func() { n.running.Shutdown(); n.running.WaitForShutdown() })
	return n
}

func (n *natsServer) url() string { return "tls://127.0.0.1:" + strconv.Itoa(n.options.Port) }

func (n *natsServer) start(t *testing.T) {
	t.Helper()
	options := n.options
	var err error
	n.running, err = server.NewServer(&options)
	harness.Must(t, err)
	n.running.Start()
	if !n.running.ReadyForConnections(time.Minute) {
		t.Fatal("NATS did not become ready")
	}
}

func (n *natsServer) restart(t *testing.T) {
	t.Helper()
	n.running.Shutdown()
	n.running.WaitForShutdown()
	n.start(t)
}

func (n *natsServer) certify(t *testing.T) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	harness.Must(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	harness.Must(t, err)
	key, err := x509.MarshalPKCS8PrivateKey(private)
	harness.Must(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})
	dir := t.TempDir()
	n.cert, n.key = filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	harness.Must(t, os.WriteFile(n.cert, certPEM, 0o600))
	harness.Must(t, os.WriteFile(n.key, keyPEM, 0o600))
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	harness.Must(t, err)
	known := x509.NewCertPool()
	known.AppendCertsFromPEM(certPEM)
	n.options.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: known, ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12}
}

// replica starts a daemon on the server, or another program with the daemon's flags.
func (n *natsServer) replica(t *testing.T, program string) *scuted.Daemon {
	t.Helper()
	return n.run(t, shared.blue, scuted.DaemonOptions{Program: program})
}

// run starts a daemon of a management cluster with its log on the server.
func (n *natsServer) run(t *testing.T, on *scuted.Installation, o scuted.DaemonOptions) *scuted.Daemon {
	t.Helper()
	o.Args = append([]string{"--nats-url", n.url(), "--nats-ca", n.cert, "--nats-cert", n.cert, "--nats-key", n.key}, o.Args...)
	d, err := on.Start(o)
	harness.Must(t, err)
	cleanup(t, d.Kill)
	return d
}
