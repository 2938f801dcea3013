package observe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"scute.dev/kube/guard"
	"scute.dev/kube/tenant"
)

// workload simulates a workload cluster: etcd members with one client port each, and an API server that forwards ports
// to their pods and runs etcdctl in them through the kubelets of their nodes.
type workload struct {
	api  *httptest.Server
	pair tls.Certificate // of the caller
	ca   *x509.CertPool

	mu        sync.Mutex
	nodes     []*node
	leader    uint64
	asked     int  // how often etcdctl was run for a status
	noExec    bool // the API server refuses pods/exec
	noEtcdctl bool // the image of etcd has no etcdctl
}

// node is a node with an etcd member.
type node struct {
	etcd.UnimplementedClusterServer
	etcd.UnimplementedMaintenanceServer
	tenant          *workload
	name            string
	id              uint64
	port            string // its client port
	url             string // the URL for its peers
	answers         *grpc.Server
	errors          []string
	size            int64 // of its database
	full            bool  // the alarm NOSPACE is raised for it
	learner         bool
	blockDefragment func() // called when a defragmentation that never ends begins
	kubelet         string // the error of its connections, "" for none, or one of the constants below
}

const (
	kubeletHangs = "hangs"   // accepts connections and sends nothing
	kubeletNoPod = "nowhere" // accepts connections but reaches no pod
)

// newTenant starts a workload cluster with nodes of these names, the first of which leads.
func newTenant(t *testing.T, names ...string) *workload {
	t.Helper()
	pair, pool := pairOf(t)
	tn := &workload{pair: pair, ca: pool}
	for i, name := range names {
		n := &node{tenant: tn, name: name, id: 1<<63 + uint64(i)} //nolint:gosec // small
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		n.port = listener.Addr().String()
		n.url = "https://" + n.port
		n.answers = grpc.NewServer(grpc.Creds(credentials.NewTLS(&tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool,
		})))
		etcd.RegisterClusterServer(n.answers, n)
		etcd.RegisterMaintenanceServer(n.answers, n)
		go func() { _ = n.answers.Serve(listener) }()
		t.Cleanup(n.answers.Stop)
		tn.nodes = append(tn.nodes, n)
	}
	tn.leader = tn.nodes[0].id
	tn.api = httptest.NewTLSServer(http.HandlerFunc(tn.serve))
	t.Cleanup(tn.api.Close)
	return tn
}

// pairOf returns a self-signed certificate for servers and clients, and a pool that trusts it.
func pairOf(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "etcd"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}

// clusterAt returns a cluster whose API server runs on this machine.
func clusterAt(url string) *tenant.Cluster { return readOnlyClusterAt(url, nil) }

// readOnlyClusterAt returns a cluster in which held returns why writes are forbidden.
func readOnlyClusterAt(url string, held func() error) *tenant.Cluster {
	g, err := guard.New([]string{"127.0.0.1"})
	if err != nil {
		panic(err)
	}
	dialer := tenant.New(g)
	dialer.CheckWritesAllowed = held
	c, err := dialer.Cluster("fleet/prod", &rest.Config{Host: url, TLSClientConfig: rest.TLSClientConfig{Insecure: true}})
	if err != nil {
		panic(err)
	}
	return c
}

// dialer returns a dialer for the workload cluster, with the client ports of the given nodes open and long timeouts.
func (tn *workload) dialer(open ...string) *dialer {
	d := &dialer{cluster: clusterAt(tn.api.URL), addresses: map[string][]string{}, timeouts: timeouts{time.Minute, time.Minute, time.Minute, time.Minute}}
	d.tls = func(distrusted func(error)) *tls.Config {
		return &tls.Config{
			MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{tn.pair},
			InsecureSkipVerify: true, //nolint:gosec // of the name, as in production
			VerifyConnection: func(state tls.ConnectionState) error {
				err := verify(state, tn.ca)
				if err != nil {
					distrusted(err)
				}
				return err
			},
		}
	}
	for _, n := range tn.nodes {
		if slices.Contains(open, n.name) {
			d.addresses[n.name] = []string{n.port}
		}
	}
	return d
}

func (tn *workload) node(name string) *node {
	return tn.nodes[slices.IndexFunc(tn.nodes, func(n *node) bool { return n.name == name })]
}

// serve simulates the API server.
func (tn *workload) serve(w http.ResponseWriter, r *http.Request) {
	pod, what, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/kube-system/pods/etcd-"), "/")
	n := tn.node(pod)
	switch {
	case what == "exec" && tn.noExec:
		http.Error(w, `pods "etcd-`+pod+`" is forbidden`, http.StatusForbidden)
	case what == "exec" && tn.noEtcdctl:
		http.Error(w, `OCI runtime exec failed: exec failed: unable to start container process: exec: "etcdctl": executable file not found in $PATH`, http.StatusInternalServerError)
	case n.kubelet == kubeletHangs:
		<-r.Context().Done()
	case n.kubelet == kubeletNoPod:
		forward(w, r, "127.0.0.1:1")
	case n.kubelet != "":
		http.Error(w, "error dialing backend: "+n.kubelet, http.StatusInternalServerError)
	case what == "portforward":
		forward(w, r, n.port)
	case what == "exec":
		serveExec(w, r, tn.etcdctl)
	}
}

// forward connects a port-forward with an address, as a kubelet does: it accepts both streams, and reports on the error
// stream if nothing serves the address.
func forward(w http.ResponseWriter, r *http.Request, address string) {
	if _, err := httpstream.Handshake(r, w, []string{"portforward.k8s.io"}); err != nil {
		return
	}
	opened := make(chan httpstream.Stream, 2)
	conn := spdy.NewResponseUpgrader().UpgradeResponse(w, r, func(s httpstream.Stream, _ <-chan struct{}) error {
		opened <- s
		return nil
	})
	if conn == nil {
		return
	}
	defer conn.Close()
	var complaints httpstream.Stream
	for {
		select {
		case <-conn.CloseChan():
			return
		case s := <-opened:
			if s.Headers().Get(corev1.StreamType) != corev1.StreamTypeData {
				complaints = s
				continue
			}
			to, err := (&net.Dialer{}).DialContext(r.Context(), "tcp", address)
			if err != nil {
				fmt.Fprintf(complaints, "error forwarding port 2379: %v", err)
				complaints.Close()
				s.Close()
				continue
			}
			go func() { _, _ = io.Copy(to, s); to.Close() }()
			go func() { _, _ = io.Copy(s, to); s.Close() }()
		}
	}
}

// etcdctl behaves and prints as the real etcdctl does; see testdata/etcdctl.
func (tn *workload) etcdctl(command []string, stdout, stderr io.Writer) int {
	if strings.Contains(strings.Join(command, " "), "endpoint status") {
		tn.mu.Lock()
		tn.asked++
		tn.mu.Unlock()
	}
	const pki = "/etc/kubernetes/pki/etcd/"
	fixed := []string{
		"--cacert=" + pki + "ca.crt", "--cert=" + pki + "server.crt", "--key=" + pki + "server.key", "--dial-timeout=2s", "--command-timeout=2s",
	}
	if len(command) < 8 || command[0] != "etcdctl" || !slices.Equal(command[2:7], fixed) {
		fmt.Fprintf(stderr, "Error: unknown flag in %q\n", command)
		return 128
	}
	endpoint := strings.TrimPrefix(command[1], "--endpoints=")
	i := slices.IndexFunc(tn.nodes, func(n *node) bool { return n.url == endpoint })
	var n *node
	if i >= 0 {
		if conn, err := net.Dial("tcp", tn.nodes[i].port); err == nil { //nolint:noctx // it is on this machine
			conn.Close()
			n = tn.nodes[i]
		}
	}
	switch do := strings.Join(command[7:], " "); {
	case do == "endpoint status --write-out=json" && n == nil:
		fmt.Fprintln(stdout, "null")
		fmt.Fprintf(stderr, `{"level":"warn","msg":"retrying of unary invoker failed"}`+"\nFailed to get the status of endpoint %s (context deadline exceeded)\n", endpoint)
		return 1
	case do == "endpoint status --write-out=json":
		complaints, _ := json.Marshal(n.errors)
		fmt.Fprintf(stdout, `[{"Endpoint":%q,"Status":{"header":{"member_id":%d,"raft_term":2},"leader":%d,"errors":%s}}]`+"\n", endpoint, n.id, tn.leaderID(), complaints)
		return 0
	case n == nil || n.id != tn.leaderID():
		fmt.Fprintf(stderr, "Error: no leader endpoint given at [%s]\n", endpoint)
		return 128
	default:
		to, err := strconv.ParseUint(command[8], 16, 64)
		if err != nil {
			fmt.Fprintln(stderr, "Error: bad target")
			return 128
		}
		tn.setLeader(to)
		fmt.Fprintf(stdout, "Leadership transferred from %x to %x\n", n.id, to)
		return 0
	}
}

func (tn *workload) leaderID() uint64 {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	return tn.leader
}

func (tn *workload) setLeader(id uint64) {
	tn.mu.Lock()
	defer tn.mu.Unlock()
	tn.leader = id
}

func (n *node) Status(context.Context, *etcd.StatusRequest) (*etcd.StatusResponse, error) {
	return &etcd.StatusResponse{Header: &etcd.ResponseHeader{MemberId: n.id}, Leader: n.tenant.leaderID(), Errors: n.errors, DbSize: n.size}, nil
}

func (n *node) MemberList(ctx context.Context, r *etcd.MemberListRequest) (*etcd.MemberListResponse, error) {
	if r.Linearizable && len(n.errors) > 0 {
		<-ctx.Done() // as a real member without a leader
		return nil, ctx.Err()
	}
	list := &etcd.MemberListResponse{}
	for _, m := range n.tenant.nodes {
		list.Members = append(list.Members, &etcd.Member{ID: m.id, Name: m.name, ClientURLs: []string{m.url}, IsLearner: m.learner})
	}
	return list, nil
}

func (n *node) Alarm(_ context.Context, r *etcd.AlarmRequest) (*etcd.AlarmResponse, error) {
	answer := &etcd.AlarmResponse{}
	for _, m := range n.tenant.nodes {
		if r.Action == etcd.AlarmRequest_DEACTIVATE && r.MemberID == m.id && r.Alarm == etcd.AlarmType_NOSPACE {
			m.full = false
		}
		if m.full {
			answer.Alarms = append(answer.Alarms, &etcd.AlarmMember{MemberID: m.id, Alarm: etcd.AlarmType_NOSPACE})
		}
	}
	return answer, nil
}

func (n *node) Defragment(ctx context.Context, _ *etcd.DefragmentRequest) (*etcd.DefragmentResponse, error) {
	if n.blockDefragment != nil {
		n.blockDefragment()
		<-ctx.Done()
		return nil, ctx.Err()
	}
	n.size = 1
	return &etcd.DefragmentResponse{}, nil
}

func (n *node) MoveLeader(_ context.Context, r *etcd.MoveLeaderRequest) (*etcd.MoveLeaderResponse, error) {
	if n.id != n.tenant.leaderID() {
		return nil, errors.New("etcdserver: not leader")
	}
	n.tenant.setLeader(r.TargetID)
	return &etcd.MoveLeaderResponse{}, nil
}
