package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
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
	// nodesTTL is how long the facts of Nodes are cached, because an owner may be reconciled many
	// times a second.
	nodesTTL                  = 10 * time.Second
	nodeTimeout, nodesTimeout = 3 * time.Second, 10 * time.Second
	maxParallelNodes          = 16
	maxListed                 = 100
)

type nodesOf map[types.UID]*remediator.NodeFacts

// nodes sets the facts of Nodes if the policy needs them. A failed read is a fact, not an error.
func (l *observation) nodes(ctx context.Context) error {
	if !l.facts.Policy.ReadsNodes() {
		return nil
	}
	last, _ := l.observer.nodes.Get(l.facts.Owner.UID)
	seen, ok := last.(nodesOf)
	if !ok {
		seen = l.observer.readNodes(ctx, l.facts)
		if err := ctx.Err(); err != nil {
			return err
		}
		l.observer.nodes.Set(l.facts.Owner.UID, seen, nodesTTL)
	}
	for i := range l.facts.Machines {
		m := &l.facts.Machines[i]
		m.NodeFacts = seen[m.UID]
	}
	return nil
}

func (o *Observer) readNodes(ctx context.Context, f *remediator.Facts) nodesOf {
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
	seen := make(nodesOf, len(f.Machines))
	var group errgroup.Group
	group.SetLimit(maxParallelNodes)
	for i := range f.Machines {
		m := &f.Machines[i]
		if m.Node == "" || m.Deleting {
			continue
		}
		looked := &remediator.NodeFacts{}
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

// readNode returns the facts of a Node. It returns no facts for a Node that does not exist, because
// the Machine reports that.
func readNode(ctx context.Context, from *tenant.Reader, name string, notices []remediator.Notice) remediator.NodeFacts {
	ctx, cancel := context.WithTimeout(ctx, nodeTimeout)
	defer cancel()
	code, raw, err := from.Get(ctx, "api", "v1", "nodes", name)
	var looked remediator.NodeFacts
	switch {
	case err != nil:
	case code == http.StatusOK:
		looked, err = parseNode(raw, notices)
	case code != http.StatusNotFound:
		err = fmt.Errorf("the API server answers %d %s", code, http.StatusText(code))
	}
	if err != nil {
		return remediator.NodeFacts{Err: "reading the Node: " + shorten(err)}
	}
	return looked
}

// boundedList is a list whose decoder limits the number of items, because a small response can expand to much memory.
type boundedList[T any] []T

type nodeCondition struct {
	Type, Status, Reason string
	LastTransitionTime   metav1.Time
}

// UnmarshalJSON decodes a list of at most maxListed items.
func (n *boundedList[T]) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != json.Delim('[') {
		return err // null
	}
	for d.More() {
		if len(*n) == maxListed {
			return fmt.Errorf("one of its lists has more than %d items", maxListed)
		}
		var one T
		if err := d.Decode(&one); err != nil {
			return err
		}
		*n = append(*n, one)
	}
	return nil
}

func parseNode(raw []byte, notices []remediator.Notice) (remediator.NodeFacts, error) {
	var node struct {
		Metadata struct{ Annotations selectedAnnotations }
		Spec     struct{ Taints boundedList[corev1.Taint] }
		Status   struct{ Conditions boundedList[nodeCondition] }
	}
	node.Metadata.Annotations.keys = keysOf(notices, v1alpha1.NoticeNodeAnnotation)
	if err := json.Unmarshal(raw, &node); err != nil {
		return remediator.NodeFacts{}, fmt.Errorf("the response of the API server is not a Node: %w", err)
	}
	looked := remediator.NodeFacts{Conditions: make(map[string]remediator.Condition, len(node.Status.Conditions)), Annotations: node.Metadata.Annotations.found}
	for _, c := range node.Status.Conditions {
		looked.Conditions[object.Truncate(c.Type, maxNameLength)] = remediator.Condition{
			Status: object.ConditionStatus(object.Truncate(c.Status, maxNameLength)), Reason: object.Truncate(c.Reason, maxNameLength), Since: c.LastTransitionTime.Time,
		}
	}
	for _, taint := range node.Spec.Taints { // a key may occur once for each effect
		if slices.ContainsFunc(notices, func(n remediator.Notice) bool {
			return n.Type == v1alpha1.NoticeNodeTaint && n.Key == taint.Key && (n.Value == "" || n.Value == taint.Value)
		}) {
			looked.Taints = addValue(looked.Taints, taint.Key, taint.Value)
		}
	}
	return looked, nil
}
