package cloud

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
)

// clientPort is the port at which an etcd member serves its clients.
const clientPort = "2379"

// hosts assigns an address to every node. The addresses are those of the loopback device, of which Linux has many. No
// server listens there before OpenClientPort.
type hosts struct {
	network  string // the first two numbers of all addresses; each cloud on this machine has its own
	mu       sync.Mutex
	of       map[string]string // "namespace/name node"
	listener []net.Listener
}

// address returns the address of a node's machine.
func (c *Cloud) address(cluster, node string) string {
	c.hosts.mu.Lock()
	defer c.hosts.mu.Unlock()
	key := cluster + " " + node
	if _, known := c.hosts.of[key]; !known {
		c.hosts.of[key] = c.hosts.address(len(c.hosts.of) + 1)
	}
	return c.hosts.of[key]
}

func (h *hosts) address(n int) string { return fmt.Sprintf("%s.%d.%d", h.network, n/250, n%250+1) }

// Addresses returns the addresses of the first thousand machines. They are addresses of this computer, so each must be
// allowed for scuted.
func (c *Cloud) Addresses() []string {
	all := make([]string, 1000)
	for i := range all {
		all[i] = c.hosts.address(i + 1)
	}
	return all
}

func (c *Cloud) clientURL(cluster, node string) string {
	return "https://" + net.JoinHostPort(c.address(cluster, node), clientPort)
}

// OpenClientPort makes the etcd member of a node listen on the address of its machine, as a real one does, and returns
// the address. It needs Linux.
func (c *Cloud) OpenClientPort(cluster, node string) (string, error) {
	address := c.address(cluster, node)
	l, err := net.Listen("tcp", net.JoinHostPort(address, clientPort))
	if err != nil {
		return "", fmt.Errorf("opening the client port of the etcd member on %s of %s: %w", node, cluster, err)
	}
	c.hosts.mu.Lock()
	c.hosts.listener = append(c.hosts.listener, l)
	c.hosts.mu.Unlock()
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go c.join(conn, cluster, node)
		}
	}()
	return address, nil
}

// join forwards a connection to the server of all members, which distinguishes them by the name that the client sends.
// It closes the connection if the member does not answer.
func (c *Cloud) join(conn net.Conn, cluster, node string) {
	defer conn.Close()
	server := strings.TrimPrefix(c.mux.ListListeners()[cluster], "https://")
	if !c.mux.HasEtcdMember(cluster, "etcd-"+node) {
		return
	}
	to, err := (&net.Dialer{}).DialContext(context.Background(), "tcp", server)
	if err != nil {
		return
	}
	defer to.Close()
	go func() {
		_, _ = io.Copy(to, conn)
		to.Close()
	}()
	_, _ = io.Copy(conn, to)
}

func (h *hosts) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, l := range h.listener {
		l.Close()
	}
}
