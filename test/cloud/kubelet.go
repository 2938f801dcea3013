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

	"scute.dev/internal/podexec"
)

// kubelets are what the in-memory provider has none of: a port-forward and a command in a pod go through the kubelet of its
// node, and end when that dies.
type kubelets struct {
	mu    sync.Mutex
	dead  map[string]bool     // "namespace/name node"
	conns map[net.Conn]string // upgraded connections, by the same
}

// StopKubelet has nobody reach the pods on a node of a workload cluster ("namespace/name") through its API server: open
// port-forwards end, and no new ones are made, nor commands run. What runs in the pods continues.
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

// StartKubelet undoes StopKubelet.
func (c *Cloud) StartKubelet(cluster, node string) {
	c.kubelets.mu.Lock()
	defer c.kubelets.mu.Unlock()
	delete(c.kubelets.dead, cluster+" "+node)
}

// intercept puts handlers of the cloud's own before those of the in-memory provider's server. That has no place for them:
// its server is a field that it does not export.
func (c *Cloud) intercept(mux *inmemoryserver.WorkloadClustersMux) error {
	field := reflect.ValueOf(mux).Elem().FieldByName("muxServer")
	if !field.IsValid() || field.Type() != reflect.TypeFor[http.Server]() {
		return fmt.Errorf("%T has no muxServer: the in-memory provider has changed", mux)
	}
	server := (*http.Server)(unsafe.Pointer(field.UnsafeAddr()))
	server.Handler = c.front(server.Handler)
	return nil
}

// front serves what goes through a kubelet, and of etcd what the in-memory one leaves out.
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
		node := strings.TrimPrefix(pod, "etcd-") // the only pods whose ports and commands matter
		through := &upgraded{ResponseWriter: w, kubelets: &c.kubelets, node: cluster + " " + node}
		defer through.over()
		switch {
		case through.dead():
			http.Error(w, fmt.Sprintf("error dialing backend: dial tcp %s:10250: connect: connection refused", c.address(cluster, node)), http.StatusInternalServerError)
		case what == "portforward":
			next.ServeHTTP(through, r)
		default:
			podexec.Serve(through, r, func(command []string, stdout, stderr io.Writer) int {
				return members.etcdctl(r.Context(), cluster, command, stdout, stderr)
			})
		}
	})
}

// upgraded remembers the connection that a request took over, so that it ends with the kubelet.
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

// Hijack is http.Hijacker's.
func (u *upgraded) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(u.ResponseWriter).Hijack()
	if err != nil {
		return nil, nil, err
	}
	u.kubelets.mu.Lock()
	defer u.kubelets.mu.Unlock()
	u.conn = conn
	u.kubelets.conns[conn] = u.node
	if u.kubelets.dead[u.node] { // it died meanwhile
		conn.Close()
	}
	return conn, rw, nil
}

// Flush is http.Flusher's.
func (u *upgraded) Flush() { _ = http.NewResponseController(u.ResponseWriter).Flush() }

func (u *upgraded) over() {
	u.kubelets.mu.Lock()
	defer u.kubelets.mu.Unlock()
	delete(u.kubelets.conns, u.conn)
}
