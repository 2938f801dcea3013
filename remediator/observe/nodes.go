package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/kube/tenant"
	"scute.dev/remediator"
)

const (
	// nodesFor is how long Nodes that were read are reused, because an owner may be reconciled many times a second.
	nodesFor = 10 * time.Second
	// nodeTimeout bounds reading one Node, nodesTimeout reading all Nodes of an owner.
	nodeTimeout, nodesTimeout = 3 * time.Second, 10 * time.Second
	// nodesAtOnce bounds the Nodes read in parallel.
	nodesAtOnce = 16
	// mostListed bounds the conditions, and the taints, of a Node.
	mostListed = 100
)

// nodeLooks stores the Nodes last read for each owner.
type nodeLooks struct {
	mu   sync.Mutex
	last map[types.UID]nodesLook // by the owner's UID
}

type nodesLook struct {
	at   time.Time
	seen map[types.UID]*remediator.NodeLook // by the machine's UID
}

// nodes sets the facts of Nodes if the policy needs them. A failed read is a fact, not an error.
func (l *look) nodes(ctx context.Context) error {
	if !l.facts.Policy.ReadsNodes() {
		return nil
	}
	seen := l.observer.nodes.recent(l.facts.Owner.UID, l.observer.now())
	if seen == nil {
		seen = l.observer.readNodes(ctx, l.facts)
		if err := ctx.Err(); err != nil {
			return err
		}
		l.observer.nodes.remember(l.facts.Owner.UID, l.observer.now(), seen)
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

// readNodes reads the Nodes of all machines that have one and are not being deleted. Its connections are closed when it returns.
func (o *Observer) readNodes(ctx context.Context, f *remediator.Facts) map[types.UID]*remediator.NodeLook {
	ctx, cancel := context.WithTimeout(ctx, nodesTimeout)
	defer cancel()
	var from *tenant.Reader
	cluster, err := o.workload(ctx, types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Owner.Cluster})
	if err == nil {
		from, err = cluster.Reader(ctx)
	}
	if err == nil {
		defer from.Close()
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
			*looked = readNode(ctx, from, m.Node, f.Policy.Checks.Notices)
			return nil
		})
	}
	_ = group.Wait() // none of them fails
	return seen
}

// readNode reads the facts of a Node. A Node that does not exist has no conditions, because its Machine reports that it is gone.
func readNode(ctx context.Context, from *tenant.Reader, name string, notices []remediator.Notice) remediator.NodeLook {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	code, raw, err := from.Get(ctx, "api", "v1", "nodes", name)
	var looked remediator.NodeLook
	switch {
	case err != nil:
	case code == http.StatusOK:
		looked, err = saidOf(raw, notices)
	case code != http.StatusNotFound:
		err = fmt.Errorf("the API server answers %d %s", code, http.StatusText(code))
	}
	if err != nil {
		return remediator.NodeLook{Err: "reading the Node: " + brief(err)}
	}
	return looked
}

// some is a list with a limit. Its items are counted while they are decoded, because a small response may need much memory.
type some[T any] []T

type nodeCondition struct {
	Type, Status, Reason string
	LastTransitionTime   metav1.Time
}

// UnmarshalJSON decodes a list of at most mostListed items.
func (n *some[T]) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return err // null
	}
	for d.More() {
		if len(*n) == mostListed {
			return fmt.Errorf("one of its lists has more than %d items", mostListed)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*n = append(*n, one)
	}
	return nil
}

// saidOf returns the facts in the JSON of a Node.
func saidOf(raw []byte, notices []remediator.Notice) (remediator.NodeLook, error) {
	var node struct {
		Metadata struct{ Annotations texts }
		Spec     struct{ Taints some[corev1.Taint] }
		Status   struct{ Conditions some[nodeCondition] }
	}
	node.Metadata.Annotations.of = keysOf(notices, v1alpha1.NoticeNodeAnnotation)
	if err := json.Unmarshal(raw, &node); err != nil {
		return remediator.NodeLook{}, fmt.Errorf("what the API server answers is none: %w", err)
	}
	looked := remediator.NodeLook{Conditions: make(map[string]remediator.Condition, len(node.Status.Conditions)), Annotations: node.Metadata.Annotations.found}
	for _, c := range node.Status.Conditions {
		looked.Conditions[object.Brief(c.Type, longestName)] = remediator.Condition{
			Status: object.Truth(object.Brief(c.Status, longestName)), Reason: object.Brief(c.Reason, longestName), Since: c.LastTransitionTime.Time,
		}
	}
	for _, taint := range node.Spec.Taints { // a key may occur once for each effect
		if slices.ContainsFunc(notices, func(n remediator.Notice) bool {
			return n.Type == v1alpha1.NoticeNodeTaint && n.Key == taint.Key && (n.Value == "" || n.Value == taint.Value)
		}) {
			looked.Taints = with(looked.Taints, taint.Key, taint.Value)
		}
	}
	return looked, nil
}
