package observe

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/client-go/rest"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

const (
	// nodesFor is how long a look at an owner's Nodes will do: its turns may come many times a second.
	nodesFor = 10 * time.Second
	// nodeTimeout bounds the reading of one Node, nodesTimeout that of all Nodes of an owner.
	nodeTimeout, nodesTimeout = 3 * time.Second, 10 * time.Second
	// nodesAtOnce are read side by side.
	nodesAtOnce = 16
	// mostNode bounds a Node, which is the tenant's. kube-apiserver takes no object of more than 1.5 MiB.
	mostNode = 2 << 20
)

// nodeLooks are the last looks at the Nodes of owners.
type nodeLooks struct {
	mu   sync.Mutex
	last map[types.UID]nodesLook // by the owner
}

type nodesLook struct {
	at   time.Time
	seen map[types.UID]*remediator.NodeLook // by the machine
}

// nodes fills what the Nodes say, where the policy asks for it. What cannot be read is a fact, not an error.
func (l *look) nodes(ctx context.Context) error {
	if !l.facts.Policy.ReadsNodes() {
		return nil
	}
	seen := l.eye.nodes.recent(l.facts.Owner.UID, l.eye.now())
	if seen == nil {
		seen = l.eye.readNodes(ctx, l.facts)
		if err := ctx.Err(); err != nil {
			return err
		}
		l.eye.nodes.remember(l.facts.Owner.UID, l.eye.now(), seen)
	}
	for i := range l.facts.Machines {
		m := &l.facts.Machines[i]
		m.OnNode = seen[m.UID]
	}
	return nil
}

func (n *nodeLooks) recent(owner types.UID, now time.Time) map[types.UID]*remediator.NodeLook {
	n.mu.Lock()
	defer n.mu.Unlock()
	if last, ok := n.last[owner]; ok && now.Sub(last.at) < nodesFor {
		return last.seen
	}
	return nil
}

func (n *nodeLooks) remember(owner types.UID, now time.Time, seen map[types.UID]*remediator.NodeLook) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.last == nil {
		n.last = make(map[types.UID]nodesLook)
	}
	for uid, last := range n.last {
		if now.Sub(last.at) >= nodesFor {
			delete(n.last, uid)
		}
	}
	n.last[owner] = nodesLook{at: now, seen: seen}
}

// readNodes reads the Nodes of all machines that have one. Its connections are closed when it returns.
func (e *Eye) readNodes(ctx context.Context, f *remediator.Facts) map[types.UID]*remediator.NodeLook {
	ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
	defer cancel()
	read, done, err := e.nodeReader(ctx, types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Owner.Cluster})
	if err == nil {
		defer done()
	}
	seen := make(map[types.UID]*remediator.NodeLook, len(f.Machines))
	var group errgroup.Group
	group.SetLimit(nodesAtOnce)
	for i := range f.Machines {
		m := &f.Machines[i]
		if m.Node == "" || m.Deleting {
			continue
		}
		looked := &remediator.NodeLook{}
		seen[m.UID] = looked
		if err != nil {
			looked.Err = err.Error()
			continue
		}
		group.Go(func() error {
			*looked = read(ctx, m.Node)
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	return seen
}

// nodeReader reads Nodes of a cluster by name, until done is called.
func (e *Eye) nodeReader(ctx context.Context, cluster types.NamespacedName) (read func(context.Context, string) remediator.NodeLook, done func(), err error) {
	config, err := e.workload(ctx, cluster)
	if err != nil {
		return nil, nil, err
	}
	return nodesBy(config)
}

func nodesBy(config *rest.Config) (read func(context.Context, string) remediator.NodeLook, done func(), err error) {
	config = rest.CopyConfig(config)
	config.Proxy = http.ProxyFromEnvironment // which keeps client-go from caching the connection of a cluster for ever
	transport, err := rest.TransportFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("preparing to read Nodes: %w", err)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, fmt.Errorf("preparing to read Nodes: %w", err)
	}
	c := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	read = func(ctx context.Context, name string) remediator.NodeLook {
		ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
		defer cancel()
		looked, err := readNode(ctx, c, base.JoinPath("api", "v1", "nodes", name))
		if err != nil {
			return remediator.NodeLook{Err: err.Error()}
		}
		return looked
	}
	return read, func() { utilnet.CloseIdleConnectionsFor(transport) }, nil
}

// readNode reads of a Node what facts are made of. A Node that does not exist has no conditions: its Machine says that it is gone.
func readNode(ctx context.Context, c *http.Client, where *url.URL) (remediator.NodeLook, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, where.String(), http.NoBody)
	if err != nil {
		return remediator.NodeLook{}, err
	}
	request.Header.Set("Accept", "application/json")
	response, err := c.Do(request)
	if err != nil {
		return remediator.NodeLook{}, fmt.Errorf("reading the Node: %w", err)
	}
	defer response.Body.Close()
	switch response.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound:
		return remediator.NodeLook{}, nil
	default:
		return remediator.NodeLook{}, fmt.Errorf("reading the Node: the API server answers %d %s", response.StatusCode, http.StatusText(response.StatusCode))
	}
	raw, err := io.ReadAll(io.LimitReader(response.Body, mostNode+1))
	if err == nil && len(raw) > mostNode {
		err = fmt.Errorf("it has more than %d bytes", mostNode)
	}
	if err != nil {
		return remediator.NodeLook{}, fmt.Errorf("reading the Node: %w", err)
	}
	return nodeOf(raw)
}

// nodeOf is what is read of a Node.
func nodeOf(raw []byte) (remediator.NodeLook, error) {
	var node struct {
		Status struct {
			Conditions []struct {
				Type, Status, Reason string
				LastTransitionTime   metav1.Time
			}
		}
	}
	if err := json.Unmarshal(raw, &node); err != nil {
		return remediator.NodeLook{}, fmt.Errorf("reading the Node: what the API server answers is none: %w", err)
	}
	looked := remediator.NodeLook{Conditions: make(map[string]remediator.Condition, len(node.Status.Conditions))}
	for _, c := range node.Status.Conditions {
		looked.Conditions[c.Type] = remediator.Condition{Status: object.Truth(c.Status), Reason: c.Reason, Since: c.LastTransitionTime.Time}
	}
	return looked, nil
}
