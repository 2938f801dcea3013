package etcd

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"k8s.io/client-go/util/keyutil"

	"scute.dev/test/assets"
	"scute.dev/test/process"
)

// members is a real etcd. Each member has the name of a node, and listens on an address of the loopback device.
type members struct {
	t         *testing.T
	dir       string
	ca        *x509.Certificate
	caKey     *ecdsa.PrivateKey
	names     []string
	addresses []string
	certs     []string // the files, without their extensions
	conns     []*grpc.ClientConn
	processes []*process.Process
}

// quota is the quota of each database.
const quota = 32 << 20

func start(t *testing.T) *members {
	t.Helper()
	binaries, err := assets.Find(t.Context(), os.Stderr)
	must(t, err)
	m := &members{t: t, dir: t.TempDir(), names: []string{"node-1", "node-2", "node-3"}, addresses: addresses(t, 4)} // one for a joining member
	m.authority()
	for i, name := range m.names {
		m.certs = append(m.certs, m.issue(name, m.addresses[i]))
		m.processes = append(m.processes, m.run(i, binaries.Etcd))
		m.conns = append(m.conns, m.connect(i, m.certs[i]))
	}
	for i := range m.names {
		eventually(t, m.names[i]+" answers", func(ctx context.Context) error {
			_, err := m.kv(i).Range(ctx, &etcd.RangeRequest{Key: []byte("any")})
			return err
		})
	}
	return m
}

// data returns the folder of a member's database. Two members may have the same name.
func (m *members) data(i int) string { return filepath.Join(m.dir, fmt.Sprint("member-", i)) }

// run starts a member with the list of all members.
func (m *members) run(i int, program string, flags ...string) *process.Process {
	m.t.Helper()
	var cluster []string
	for j, name := range m.names {
		if j != i && name == m.names[i] { // a joining member identifies the others by their URLs
			name += "-earlier"
		}
		cluster = append(cluster, name+"="+m.peer(j))
	}
	name, client, dir := m.names[i], "https://"+m.addresses[i]+":2379", m.data(i)
	p, err := process.Start(process.Spec{Path: program, Log: dir + ".log", Args: append(flags,
		"--name="+name, "--data-dir="+dir,
		"--listen-client-urls="+client, "--advertise-client-urls="+client, "--listen-peer-urls="+m.peer(i), "--initial-advertise-peer-urls="+m.peer(i),
		"--initial-cluster="+strings.Join(cluster, ","), fmt.Sprintf("--quota-backend-bytes=%d", quota),
		"--cert-file="+m.certs[i]+".crt", "--key-file="+m.certs[i]+".key", "--trusted-ca-file="+filepath.Join(m.dir, "ca.crt"), "--client-cert-auth",
		"--unsafe-no-fsync", "--log-level=warn", "--heartbeat-interval=250", "--election-timeout=2500", // so that a busy machine causes no elections
	)})
	must(m.t, err)
	m.t.Cleanup(func() { _ = p.Kill(context.WithoutCancel(m.t.Context())) })
	return p
}

// peer returns the URL at which the other members reach a member.
func (m *members) peer(i int) string { return "http://" + m.addresses[i] + ":2380" }

// addresses returns unused addresses, of a network that no other process uses for etcd.
func addresses(t *testing.T, n int) []string {
	t.Helper()
	for network := range 250 {
		var found []string
		for i := range n {
			address := fmt.Sprintf("127.83.%d.%d", network, i+1)
			l, err := net.Listen("tcp", address+":2379")
			if err != nil {
				break
			}
			l.Close()
			found = append(found, address)
		}
		if len(found) == n {
			return found
		}
	}
	t.Fatal("no free address for etcd")
	return nil
}

func (m *members) kv(i int) etcd.KVClient { return etcd.NewKVClient(m.conns[i]) }

func (m *members) maintenance(i int) etcd.MaintenanceClient {
	return etcd.NewMaintenanceClient(m.conns[i])
}

// leader returns the index of the leader.
func (m *members) leader(ctx context.Context) int {
	m.t.Helper()
	for i := range m.names {
		s, err := m.maintenance(i).Status(ctx, &etcd.StatusRequest{})
		must(m.t, err)
		if s.Leader == s.Header.MemberId {
			return i
		}
	}
	m.t.Fatal("nobody leads")
	return 0
}

// sizes returns the sizes of the databases on disk.
func (m *members) sizes(ctx context.Context) []int64 {
	m.t.Helper()
	var sizes []int64
	for i := range m.names {
		s, err := m.maintenance(i).Status(ctx, &etcd.StatusRequest{})
		must(m.t, err)
		sizes = append(sizes, s.DbSize)
	}
	return sizes
}

// authority creates the CA of all certificates.
func (m *members) authority() {
	m.t.Helper()
	var err error
	m.caKey, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(m.t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd-ca"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, m.caKey.Public(), m.caKey)
	must(m.t, err)
	m.ca, err = x509.ParseCertificate(der)
	must(m.t, err)
	must(m.t, os.WriteFile(filepath.Join(m.dir, "ca.crt"), m.caPEM(), 0o600))
}

func (m *members) caPEM() []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: m.ca.Raw})
}

func (m *members) caKeyPEM() []byte {
	m.t.Helper()
	key, err := keyutil.MarshalPrivateKeyToPEM(m.caKey)
	must(m.t, err)
	return key
}

// issue writes a certificate and its key, and returns their path without the extension.
func (m *members) issue(name, address string) string {
	m.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	must(m.t, err)
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, IPAddresses: []net.IP{net.ParseIP(address)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, m.ca, key.Public(), m.caKey)
	must(m.t, err)
	path := filepath.Join(m.dir, address+"-tls")
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	must(m.t, err)
	must(m.t, os.WriteFile(path+".crt", pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	must(m.t, os.WriteFile(path+".key", encoded, 0o600))
	return path
}

func (m *members) connect(i int, cert string) *grpc.ClientConn {
	m.t.Helper()
	pair, err := tls.LoadX509KeyPair(cert+".crt", cert+".key")
	must(m.t, err)
	roots := x509.NewCertPool()
	roots.AddCert(m.ca)
	conn, err := grpc.NewClient("passthrough:///"+m.addresses[i]+":2379", grpc.WithTransportCredentials(credentials.NewTLS(&tls.Config{
		MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, RootCAs: roots, ServerName: m.addresses[i],
	})))
	must(m.t, err)
	m.t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// eventually retries try until it succeeds.
func eventually(t *testing.T, what string, try func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	for {
		once, done := context.WithTimeout(ctx, 5*time.Second)
		err := try(once)
		done()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s: %v", what, err)
		case <-time.After(100 * time.Millisecond):
		}
	}
}
