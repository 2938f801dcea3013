package transfer

import (
	"context"
	"slices"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// Graph is what belongs to Clusters of one namespace: what a pause has to bring to rest though nothing is moved. Nothing outside
// of the namespace has to be readable.
type Graph struct {
	transfer  Transfer
	selection mover.Selection
}

// NewGraph asks which kinds the cluster serves.
func NewGraph(ctx context.Context, c *kube.Cluster, sel mover.Selection) (*Graph, error) {
	g := &Graph{transfer: Transfer{Source: c}, selection: sel}
	if err := g.transfer.connect(ctx, mover.Spec{}, "", false); err != nil {
		return nil, err
	}
	_, err := g.transfer.clusters()
	return g, err
}

// Kind is how the server serves the kind of an object.
func (g *Graph) Kind(ref object.Ref) (kube.Type, error) { return g.transfer.kind(ref) }

// Below are the Clusters and what belongs to them. others are all objects of the namespace that have controllers.
func (g *Graph) Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error) {
	if err := g.transfer.annotated(ctx); err != nil {
		return nil, nil, err
	}
	var parts []listing
	for _, typ := range g.transfer.types {
		if typ.Namespaced && !typ.Plain() {
			parts = append(parts, listing{typ, g.selection.Namespace})
		}
	}
	w := newSnapshot()
	if err := g.transfer.read(ctx, w, parts, false, nil); err != nil {
		return nil, nil, err
	}
	members := mover.Select(w.objects, g.selection)
	members.Objects = slices.DeleteFunc(members.Objects, func(m mover.Member) bool { return m.Named }) // it is not theirs
	for _, o := range subjects(members) {
		if o.Cluster != "" {
			below = append(below, o)
		}
	}
	return below, w.objects, nil
}
