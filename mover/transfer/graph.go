package transfer

import (
	"context"
	"slices"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// Graph reads the objects that belong to Clusters of one namespace, for a pause without a move. It
// needs no read permission outside of the namespace.
type Graph struct {
	transfer  Transfer
	selection mover.Selection
}

// NewGraph returns the graph of a selection in a cluster. It reads which kinds the cluster serves.
func NewGraph(ctx context.Context, c *kube.Cluster, sel mover.Selection) (*Graph, error) {
	g := &Graph{transfer: Transfer{Source: c}, selection: sel}
	if err := g.transfer.connect(ctx, mover.Spec{}, "", false); err != nil {
		return nil, err
	}
	_, err := g.transfer.clusterType()
	return g, err
}

// Kind returns the type that the server uses for an object.
func (g *Graph) Kind(ref object.Ref) (kube.Type, error) { return g.transfer.kind(ref) }

// Below returns the selected Clusters with the objects that belong to them (below), and all
// observed objects of the namespace, which do not include Secrets and ConfigMaps (others).
func (g *Graph) Below(ctx context.Context) (below []pause.Subject, others []object.Observed, err error) {
	if err := g.transfer.refreshAnnotations(ctx); err != nil {
		return nil, nil, err
	}
	var parts []listing
	for _, typ := range g.transfer.sourceTypes {
		if typ.Namespaced && !typ.IsCore() {
			parts = append(parts, listing{side: g.transfer.Source, typ: typ, namespace: g.selection.Namespace})
		}
	}
	w := newSnapshot()
	if err := g.transfer.read(ctx, w, parts, false, nil); err != nil {
		return nil, nil, err
	}
	members := mover.Select(w.objects, g.selection)
	members.Objects = slices.DeleteFunc(members.Objects, func(m mover.Member) bool { return m.ByReference }) // the others belong to no Cluster
	below = slices.DeleteFunc(subjects(members), func(o pause.Subject) bool { return o.Cluster == "" })
	return below, w.objects, nil
}
