package observe

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube/object"
	"scute.dev/remediator"
	"scute.dev/view"
)

const (
	// portDelay is how long a query waits for the port-forward before it also tries the client port.
	portDelay = 500 * time.Millisecond
	// portTimeout limits a query on one address. A query takes that long if a firewall drops the
	// connection.
	portTimeout = time.Second
	// maxAddresses limits the addresses used for each machine and for each node, because several
	// Machines may name the same node.
	maxAddresses = 2
)

// route represents how a member is reached. The zero value means a port-forward to the member's pod
// through the kubelet of its node.
type route struct {
	address string // client port of its machine
	peer    string // node in whose etcd pod etcdctl runs
}

func (w route) String() string {
	switch {
	case w.peer != "":
		return "etcdctl in " + podOf(w.peer)
	case w.address != "":
		return "client port " + w.address
	default:
		return remediator.PortForward
	}
}

// description returns the part of a message that follows "no connection".
func (w route) description() string {
	if w.address != "" {
		return "to " + w.address
	}
	return "through its node"
}

type timeouts struct{ forward, member, port, peer time.Duration }

func defaultTimeouts() timeouts {
	return timeouts{forward: portDelay, member: memberTimeout, port: portTimeout, peer: peerTimeout}
}

func (w timeouts) forRoute(forRoute route) time.Duration {
	if forRoute.address != "" {
		return w.port
	}
	return w.member
}

// query queries the member on a node by a port-forward to its pod. If the member does not respond,
// or not within the time forward, query also tries the member's client port, which needs no
// kubelet.
func (d *dialer) query(ctx context.Context, node string) answer {
	ctx, cancel := context.WithTimeout(ctx, d.member)
	defer cancel()
	if len(d.addresses[node]) == 0 {
		return d.queryBy(ctx, node, route{})
	}
	done := make(chan answer, 1)
	forwarding, giveUp := context.WithCancel(ctx)
	defer giveUp()
	go func() { done <- d.queryBy(forwarding, node, route{}) }()
	alone := time.NewTimer(d.forward)
	defer alone.Stop()
	select {
	case forwarded := <-done:
		if forwarded.responded() {
			return forwarded
		}
		return forwarded.or(d.queryPort(ctx, node))
	case <-alone.C:
	}
	direct := d.queryPort(ctx, node)
	if !direct.responded() {
		return (<-done).or(direct)
	}
	giveUp()
	<-done
	direct.reason = cmp.Or(direct.reason, "no answer through its node within "+view.Duration(d.forward))
	return direct
}

// responded reports whether the member itself responded, healthy or not.
func (a answer) responded() bool { return a.id != 0 }

// or returns a if the member responded, or else other if it responded to that. If neither has a
// response, it returns a with both reasons.
func (a answer) or(other answer) answer {
	switch {
	case a.responded():
		return a
	case other.responded():
		other.reason = cmp.Or(other.reason, a.reason)
		return other
	default:
		a.reason += "; " + other.reason
		return a
	}
}

func (d *dialer) queryBy(ctx context.Context, node string, by route) answer {
	a := answer{node: node, route: by, answers: object.Unknown}
	line, err := d.open(ctx, node, by)
	if err != nil {
		a.reason = "no connection could be prepared: " + shorten(err)
		return a
	}
	defer line.Close()
	return line.query(ctx, a)
}

// queryPort queries the client port of the member on a node, at the addresses of its machine. An
// address may now belong to another machine, even of another cluster, so queryPort accepts only a
// member with the node's name and a certificate of the cluster's etcd CA.
func (d *dialer) queryPort(ctx context.Context, node string) answer {
	none := answer{node: node, answers: object.Unknown}
	for _, address := range d.addresses[node] {
		asking, cancel := context.WithTimeout(ctx, d.port)
		a := d.queryBy(asking, node, route{address: address})
		cancel()
		if a.responded() && a.isOwnNode() {
			return a
		}
		if a.responded() {
			a.reason = "another member answers on " + address
		}
		none.route, none.reason = a.route, a.reason
	}
	return none
}

// isOwnNode reports whether the member that responded lists itself under the node's name.
func (a *answer) isOwnNode() bool {
	return slices.ContainsFunc(slices.Concat(a.list, a.stale), func(m *etcd.Member) bool { return m.ID == a.id && m.Name == a.node })
}

// addresses returns the addresses of the client ports of a control plane's etcd members, by node.
// It uses the addresses in Machines, which the infrastructure provider sets. It ignores the
// addresses that etcd lists, because the tenant could then choose which addresses scute dials.
func (o *Observer) addresses(ctx context.Context, cluster types.NamespacedName) (map[string][]string, error) {
	list := &clusterv1.MachineList{}
	err := o.cache.List(ctx, list, client.InNamespace(cluster.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.Name}, client.UnsafeDisableDeepCopy)
	if err != nil {
		return nil, fmt.Errorf("listing the machines of the cluster: %w", err)
	}
	return clientPorts(list.Items), nil
}

func clientPorts(machines []clusterv1.Machine) map[string][]string {
	machines = slices.SortedFunc(slices.Values(machines), func(a, b clusterv1.Machine) int { return strings.Compare(a.Name, b.Name) })
	of := make(map[string][]string)
	for i := range machines {
		node := nodeOf(&machines[i])
		for _, a := range machines[i].Status.Addresses { // the cache keeps addresses only of control plane machines
			port := net.JoinHostPort(a.Address, strconv.Itoa(etcdPort))
			if len(of[node]) < maxAddresses && !slices.Contains(of[node], port) {
				of[node] = append(of[node], port)
			}
		}
	}
	return of
}

// etcdAddresses returns the addresses at which the etcd member of a control plane machine may be
// queried, or nil for a worker. The dialer checks whether scuted may dial them.
func etcdAddresses(m *clusterv1.Machine) []clusterv1.MachineAddress {
	if _, is := m.Labels[clusterv1.MachineControlPlaneLabel]; !is {
		return nil
	}
	var found []clusterv1.MachineAddress
	for _, kind := range []clusterv1.MachineAddressType{clusterv1.MachineInternalIP, clusterv1.MachineExternalIP} {
		for _, a := range m.Status.Addresses {
			ip, err := netip.ParseAddr(a.Address)
			if err == nil && a.Type == kind && len(found) < maxAddresses && !ip.IsUnspecified() && !ip.IsMulticast() && !ip.IsLinkLocalUnicast() {
				found = append(found, a)
			}
		}
	}
	return found
}
