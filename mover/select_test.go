package mover_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// fleet returns Clusters of one ClusterClass with some Machines each, and a selection of the first half of the
// Clusters.
func fleet(clusters, machines int) ([]object.Observed, mover.Selection) {
	core := func(kind, name, uid string) object.Observed {
		return object.Observed{Ref: object.Ref{Group: object.CoreGroup, Kind: kind, Namespace: "fleet", Name: name}, UID: types.UID(uid), Version: "v1beta2"}
	}
	world := []object.Observed{core("ClusterClass", "base", "class")}
	sel := mover.Selection{Namespace: "fleet"}
	for i := range clusters {
		name := fmt.Sprintf("edge-site-%05d", i)
		c := core("Cluster", name, name)
		c.Cluster = &object.ClusterFacts{ClassName: "base", ClassNamespace: "fleet"}
		world = append(world, c)
		if i < clusters/2 {
			sel.Clusters = append(sel.Clusters, name)
		}
		for j := range machines {
			m := core("Machine", fmt.Sprintf("%s-%d", name, j), fmt.Sprintf("%d-%d", i, j))
			m.ClusterName, m.Owners = name, []object.Owner{{Ref: c.Ref, UID: c.UID}}
			world = append(world, m)
		}
	}
	return world, sel
}

// TestSelectByNameCostsNoMore checks that a selection of half of the Clusters by name takes about as long as one of all
// Clusters. A search in a list of names took 11 times as long.
func TestSelectByNameCostsNoMore(t *testing.T) {
	world, named := fleet(20_000, 0)
	checkCost(t, world, mover.Selection{Namespace: "fleet", All: true}, world, named)
}

// TestSelectByClassCostsNoMore checks that the search for other users of a ClusterClass does not visit all Clusters for
// each Cluster.
func TestSelectByClassCostsNoMore(t *testing.T) {
	world, named := fleet(5_000, 0)
	classless := slices.Clone(world)
	for i, o := range classless {
		if o.Cluster != nil {
			classless[i].Cluster = &object.ClusterFacts{}
		}
	}
	checkCost(t, classless, named, world, named)
}

// checkCost compares the durations of two selections. They are measured in turn, each by its fastest call: other load
// on the machine makes some calls slower, and none faster.
func checkCost(t *testing.T, plainWorld []object.Observed, plain mover.Selection, world []object.Observed, sel mover.Selection) {
	t.Helper()
	took := func(world []object.Observed, sel mover.Selection) time.Duration {
		start := time.Now()
		mover.Select(world, sel)
		return time.Since(start)
	}
	usual, other := time.Hour, time.Hour
	for tries := 0; tries < 3 || tries < 20 && other > 5*usual; tries++ {
		usual, other = min(usual, took(plainWorld, plain)), min(other, took(world, sel))
	}
	t.Logf("Select took %s, and %s for comparison", other, usual)
	if other > 5*usual {
		t.Errorf("Select took %s, and %s for comparison", other, usual)
	}
}

// BenchmarkSelect measures one selection of half of the Clusters of a namespace.
func BenchmarkSelect(b *testing.B) {
	for _, clusters := range []int{250, 1000, 2000} {
		world, sel := fleet(clusters, 20)
		b.Run(fmt.Sprintf("%d of %d clusters", clusters/2, clusters), func(b *testing.B) {
			for b.Loop() {
				if m := mover.Select(world, sel); len(m.Objects) < clusters/2*21 {
					b.Fatalf("Select returned %d members", len(m.Objects))
				}
			}
		})
	}
}
