package observe

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

const (
	// reachTimeout bounds the probe of the workload cluster's API server, memberTimeout that of one member of etcd.
	reachTimeout  = 3 * time.Second
	memberTimeout = 3 * time.Second
	// secretTimeout bounds the reading of a Secret that says how to get there.
	secretTimeout = 5 * time.Second
)

// Ask fills f.Cluster.Reach and, for a control plane with an etcd of its own, f.Etcd, by asking now. What does not answer
// is a fact, not an error. It takes up to 3 s for the API server and the members that machines have, side by side; up to 3 s
// more for members that no machine has; and, where a member could not be asked, up to 8 s more for asking its peers.
// Connections are closed when it returns.
func (e *Eye) Ask(ctx context.Context, f *remediator.Facts) error {
	f.Etcd = nil
	f.Cluster.Reach = object.Unknown
	if f.Owner.Cluster == "" {
		return nil
	}
	key := types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Owner.Cluster}
	asked := f.Owner.Kind == string(remediator.ControlPlane) && !f.Owner.ExternalEtcd
	config, err := e.workload(ctx, key)
	if err != nil {
		if asked {
			f.Etcd = &remediator.Etcd{Err: err.Error()}
		}
		return ctx.Err()
	}
	reach := make(chan object.Truth, 1)
	go func() { reach <- answersAtAll(ctx, config) }()
	if asked {
		f.Etcd = e.etcd(ctx, key, config, nodes(f.Machines))
	}
	f.Cluster.Reach = <-reach
	return ctx.Err()
}

func nodes(machines []remediator.Machine) []string {
	var names []string
	for i := range machines {
		if node := machines[i].Node; node != "" {
			names = append(names, node)
		}
	}
	return names
}

// answersAtAll says whether an API server answers: one that says that it is not ready does not, one that refuses us does.
func answersAtAll(ctx context.Context, config *rest.Config) object.Truth {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	config = rest.CopyConfig(config)
	config.Proxy = http.ProxyFromEnvironment // which keeps client-go from caching the connection of a cluster for ever
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return object.Unknown
	}
	defer utilnet.CloseIdleConnectionsFor(client.Transport)
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return object.Unknown
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, base.JoinPath("readyz").String(), http.NoBody)
	if err != nil {
		return object.Unknown
	}
	response, err := client.Do(request)
	if err != nil {
		return object.False
	}
	defer response.Body.Close()
	if response.StatusCode >= http.StatusInternalServerError {
		return object.False
	}
	return object.True
}

// etcd asks each member itself. Err of what is returned says why none could be.
func (e *Eye) etcd(ctx context.Context, cluster types.NamespacedName, config *rest.Config, nodes []string) *remediator.Etcd {
	d, err := e.dialer(ctx, cluster, config)
	if err != nil {
		return &remediator.Etcd{Err: err.Error()}
	}
	if len(nodes) == 0 {
		return &remediator.Etcd{Err: "no machine has a node, so there is no member to ask"}
	}
	return d.survey(ctx, nodes)
}

// MoveLeader moves etcd's leadership to the member of a node, asking the leader for it: one of those on the nodes given.
// Where that member leads already, nothing is done.
func (e *Eye) MoveLeader(ctx context.Context, cluster types.NamespacedName, nodes []string, to string) error {
	config, err := e.workload(ctx, cluster)
	if err == nil {
		var d *dialer
		if d, err = e.dialer(ctx, cluster, config); err == nil {
			err = d.moveLeader(ctx, nodes, to)
		}
	}
	if err != nil {
		return fmt.Errorf("moving the leadership of etcd in %s to %s: %w", cluster, to, err)
	}
	return nil
}
