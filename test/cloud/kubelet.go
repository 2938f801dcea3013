package cloud

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"strings"
	"sync"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	inmemoryserver "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"
)

// kubelets adds kubelets to the in-memory provider, which has none: a port-forward and a command in a pod use the
// kubelet of the node, and end when it stops.
type kubelets struct {
	mu    sync.Mutex
	dead  map[string]bool     // "namespace/name node"
	conns map[net.Conn]string // upgraded connections, with the same key as dead
}

// StopKubelet makes the pods on a node of a workload cluster ("namespace/name") unreachable through the API server:
// open port-forwards end, and new ones and commands fail. The pods continue to run.
func (c *Cloud) StopKubelet(cluster, node string) {
	c.kubelets.mu.Lock()
	defer c.kubelets.mu.Unlock()
	c.kubelets.dead[cluster+" "+node] = true
	for conn, on := range c.kubelets.conns {
		if on == cluster+" "+node {
			conn.Close()
			delete(c.kubelets.conns, conn)
		}
	}
}

// StartKubelet reverts StopKubelet.
func (c *Cloud) StartKubelet(cluster, node string) {
	c.kubelets.mu.Lock()
	defer c.kubelets.mu.Unlock()
	delete(c.kubelets.dead, cluster+" "+node)
}

// intercept adds the cloud's own handlers before those of the in-memory provider's server. It uses reflection, because
// the server is an unexported field.
func (c *Cloud) intercept(mux *inmemoryserver.WorkloadClustersMux) error {
	field := reflect.ValueOf(mux).Elem().FieldByName("muxServer")
	if !field.IsValid() || field.Type() != reflect.TypeFor[http.Server]() {
		return fmt.Errorf("%T has no muxServer: the in-memory provider has changed", mux)
	}
	server := (*http.Server)(unsafe.Pointer(field.UnsafeAddr()))
	server.Handler = c.front(server.Handler)
	return nil
}

// front serves requests that use a kubelet, and the calls to etcd that the in-memory one does not implement.
func (c *Cloud) front(next http.Handler) http.Handler {
	members := newMembers(c)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if members.serve(w, r) {
			return
		}
		pod, what, found := strings.Cut(strings.TrimPrefix(r.URL.Path, "/api/v1/namespaces/"+metav1.NamespaceSystem+"/pods/"), "/")
		if !found || what != "portforward" && what != "exec" {
			next.ServeHTTP(w, r)
			return
		}
		cluster := c.clusterOf(r.Context())
		node := strings.TrimPrefix(pod, "etcd-") // the ports and commands of other pods are not used
		through := &upgraded{ResponseWriter: w, kubelets: &c.kubelets, node: cluster + " " + node}
		defer through.over()
		switch {
		case through.dead():
			http.Error(w, fmt.Sprintf("error dialing backend: dial tcp %s:10250: connect: connection refused", c.address(cluster, node)), http.StatusInternalServerError)
		case what == "portforward":
			next.ServeHTTP(through, r)
		default:
			serveExec(through, r, func(command []string, stdout, stderr io.Writer) int {
				return members.etcdctl(r.Context(), cluster, command, stdout, stderr)
			})
		}
	})
}

// upgraded records the connection that a request hijacks, so that it ends with the kubelet.
type upgraded struct {
	http.ResponseWriter
	kubelets *kubelets
	node     string
	conn     net.Conn
}

func (u *upgraded) dead() bool {
	u.kubelets.mu.Lock()
	defer u.kubelets.mu.Unlock()
	return u.kubelets.dead[u.node]
}

// Hijack implements http.Hijacker.
func (u *upgraded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	u.kubelets.mu.Lock()
	defer u.kubelets.mu.Unlock()
	u.conn = conn
	u.kubelets.conns[conn] = u.node
	if u.kubelets.dead[u.node] { // the kubelet stopped meanwhile
		conn.Close()
	}
	return conn, rw, nil
}

// Flush implements http.Flusher.
func (u *upgraded) Flush() { _ = http.NewResponseController(u.ResponseWriter).Flush() }

func (u *upgraded) over() {
	u.kubelets.mu.Lock()
	defer u.kubelets.mu.Unlock()
	delete(u.kubelets.conns, u.conn)
}
