package eventlog_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/jwt/v2"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

func TestConnectWithTLSAndCredentials(t *testing.T) {
	dir := t.TempDir()
	certs := makeCertificates(t, dir)
	operator, creds := makeAccount(t, dir)
	srv := logtest.Serve(t, &server.Options{
		TLS: true, TLSVerify: true, TLSConfig: certs.server,
		TrustedOperators: []*jwt.OperatorClaims{operator.claims}, AccountResolver: operator.resolver, SystemAccount: operator.system,
	})
	o := eventlog.ExternalOptions{URL: srv.ClientURL(), CredsFile: creds, TLS: certs.client, Create: true, MaxBytes: 1 << 20}
	l := connectTest(t, o)
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 2))
	if records, err := l.Read(t.Context(), moveOf("a"), 0); err != nil || len(records) != 1 {
		t.Errorf("Read = %v, error %v, want 1 commit", records, err)
	}
	for name, spoil := range map[string]func(*eventlog.ExternalOptions){
		"without credentials":        func(o *eventlog.ExternalOptions) { o.CredsFile = "" },
		"without the server's CA":    func(o *eventlog.ExternalOptions) { o.TLS.CA = "" },
		"without own certificate":    func(o *eventlog.ExternalOptions) { o.TLS.Cert, o.TLS.Key = "", "" },
		"with a file that is absent": func(o *eventlog.ExternalOptions) { o.CredsFile = filepath.Join(dir, "absent") },
	} {
		bad := o
		spoil(&bad)
		_, err := eventlog.Connect(t.Context(), bad)
		if err == nil {
			t.Errorf("%s: Connect succeeded", name)
			continue
		}
		wantErr(t, err, eventlog.ErrUnavailable, srv.ClientURL())
	}
}

func TestConnectToNobody(t *testing.T) {
	_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: "nats://127.0.0.1:1"})
	wantErr(t, err, eventlog.ErrUnavailable, "127.0.0.1:1")
}

// TestShown checks that messages contain the server's address without credentials.
func TestShown(t *testing.T) {
	for url, want := range map[string]string{
		"tls://nats:4222":                            "tls://nats:4222",
		"nats://secret@nats:4222":                    "nats://nats:4222",
		"nats://user:secret@a:4222,tls://secret@b:1": "nats://a:4222,tls://b:1",
		"secret@nats:4222,b":                         "nats:4222,b",
	} {
		if got := eventlog.RedactURL(url); got != want {
			t.Errorf("RedactURL(%s) = %s, want %s", url, got, want)
		}
	}
	_, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: "nats://secret@127.0.0.1:1"})
	if wantErr(t, err, eventlog.ErrUnavailable, "nats://127.0.0.1:1"); strings.Contains(err.Error(), "secret") {
		t.Error(err)
	}
}

// TestReplicated checks conflicts, which a cluster of three servers reports in other ways, and appends after the leader
// stops.
func TestReplicated(t *testing.T) {
	servers, urls := logtest.Cluster(t)
	ctx := withTimeout(t, 2*time.Minute)
	o := eventlog.ExternalOptions{URL: urls, Replicas: 3, Create: true}
	l := connectEventually(t, o)
	logs := []*eventlog.Log{l, connectTest(t, o), connectTest(t, eventlog.ExternalOptions{URL: o.URL})}
	checkOneHistory(t, logs, 25)

	a := moveOf("after the leader went")
	last := mustAppend(t, l, commit(a, "before", 0, 1))
	info, err := l.Stream().Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, srv := range servers {
		if srv.Name() == info.Cluster.Leader {
			srv.Shutdown()
			srv.WaitForShutdown()
		}
	}
	again := commit(a, "after", last, 1)
	r, err := l.Append(ctx, again)
	if err != nil {
		t.Fatal(err)
	}
	records, err := l.Read(ctx, a, 0)
	if err != nil || len(records) != 2 || records[1].Seq != r.Seq {
		t.Errorf("Read returned %d commits, error %v, want 2", len(records), err)
	}
}

// connectEventually connects once a new cluster has elected its leaders.
func connectEventually(t *testing.T, o eventlog.ExternalOptions) *eventlog.Log {
	t.Helper()
	ctx := withTimeout(t, time.Minute)
	for {
		l, err := eventlog.Connect(ctx, o)
		if err == nil {
			t.Cleanup(func() { _ = l.Close() })
			return l
		}
		select {
		case <-time.After(100 * time.Millisecond):
		case <-ctx.Done():
			t.Fatal(err)
		}
	}
}

type certificates struct {
	server *tls.Config
	client eventlog.TLSFiles
}

// makeCertificates creates a CA, and the certificates that it signs for a server, a client, and each of the names.
func makeCertificates(t *testing.T, dir string, names ...string) certificates {
	t.Helper()
	key := func() *ecdsa.PrivateKey {
		k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	write := func(name, kind string, der []byte) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	caKey := key()
	ca := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}
	sign := func(name string, serial int64, k *ecdsa.PrivateKey) (cert, keyPath string) {
		template := &x509.Certificate{
			SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
			NotBefore: ca.NotBefore, NotAfter: ca.NotAfter, KeyUsage: x509.KeyUsageDigitalSignature,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		}
		if name == "ca" {
			template = ca
		}
		der, err := x509.CreateCertificate(rand.Reader, template, ca, &k.PublicKey, caKey)
		if err != nil {
			t.Fatal(err)
		}
		keyDER, err := x509.MarshalECPrivateKey(k)
		if err != nil {
			t.Fatal(err)
		}
		return write(name+".crt", "CERTIFICATE", der), write(name+".key", "EC PRIVATE KEY", keyDER)
	}
	caFile, _ := sign("ca", 1, caKey)
	serverCert, serverKey := sign("server", 2, key())
	clientCert, clientKey := sign("client", 3, key())
	for i, name := range names {
		sign(name, int64(4+i), key())
	}
	config, err := server.GenTLSConfig(&server.TLSConfigOpts{CertFile: serverCert, KeyFile: serverKey, CaFile: caFile, Verify: true})
	if err != nil {
		t.Fatal(err)
	}
	return certificates{server: config, client: eventlog.TLSFiles{CA: caFile, Cert: clientCert, Key: clientKey}}
}

type operator struct {
	claims   *jwt.OperatorClaims
	resolver *server.MemAccResolver
	system   string
}

// makeAccount creates an operator, a system account, an account with JetStream, and a user's credentials file.
func makeAccount(t *testing.T, dir string) (operator, string) {
	t.Helper()
	pair := func(create func() (nkeys.KeyPair, error)) (nkeys.KeyPair, string) {
		kp, err := create()
		if err != nil {
			t.Fatal(err)
		}
		public, err := kp.PublicKey()
		if err != nil {
			t.Fatal(err)
		}
		return kp, public
	}
	encode := func(c interface {
		Encode(nkeys.KeyPair) (string, error)
	}, by nkeys.KeyPair,
	) string {
		s, err := c.Encode(by)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	okp, opub := pair(nkeys.CreateOperator)
	_, spub := pair(nkeys.CreateAccount)
	akp, apub := pair(nkeys.CreateAccount)
	ukp, upub := pair(nkeys.CreateUser)
	claims := jwt.NewOperatorClaims(opub)
	claims.SystemAccount = spub
	encode(claims, okp)
	account := jwt.NewAccountClaims(apub)
	account.Limits.JetStreamLimits = jwt.JetStreamLimits{DiskStorage: -1, MemoryStorage: -1, Streams: -1, Consumer: -1}
	resolver := &server.MemAccResolver{}
	for pub, token := range map[string]string{apub: encode(account, okp), spub: encode(jwt.NewAccountClaims(spub), okp)} {
		if err := resolver.Store(pub, token); err != nil {
			t.Fatal(err)
		}
	}
	seed, err := ukp.Seed()
	if err != nil {
		t.Fatal(err)
	}
	creds, err := jwt.FormatUserConfig(encode(jwt.NewUserClaims(upub), akp), seed)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "user.creds")
	if err := os.WriteFile(path, creds, 0o600); err != nil {
		t.Fatal(err)
	}
	return operator{claims, resolver, spub}, path
}
