package pause

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/object"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// The API groups of objects with switches, and the annotation of EKS Anywhere.
const (
	fluxKustomizeGroup = "kustomize.toolkit.fluxcd.io"
	fluxHelmGroup      = "helm.toolkit.fluxcd.io"
	eksaGroup          = "anywhere.eks.amazonaws.com"
	eksaPaused         = eksaGroup + "/paused"
)

func selectedSwitches(ctx context.Context, cluster *access.Cluster, c *task.Call, w With, namespace string) ([]pausedSwitch, error) {
	var selected []pausedSwitch
	for _, r := range w.Kustomizations {
		ref := object.Ref{Group: fluxKustomizeGroup, Kind: "Kustomization", Namespace: cmp.Or(r.Namespace, c.Namespace), Name: r.Name}
		selected = append(selected, pausedSwitch{Ref: ref})
	}
	for _, r := range w.HelmReleases {
		ref := object.Ref{Group: fluxHelmGroup, Kind: "HelmRelease", Namespace: cmp.Or(r.Namespace, c.Namespace), Name: r.Name}
		selected = append(selected, pausedSwitch{Ref: ref})
	}
	for _, name := range w.EKSA {
		ref := object.Ref{Group: eksaGroup, Kind: "Cluster", Namespace: namespace, Name: name}
		u, err := cluster.Get(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("with.eksa: %w", err)
		}
		for _, r := range append([]object.Ref{ref}, eksaConfigs(u)...) {
			if s := (pausedSwitch{Ref: r, Annotation: eksaPaused}); !slices.Contains(selected, s) {
				selected = append(selected, s)
			}
		}
	}
	return selected, nil
}

// eksaConfigs returns the configurations that have their own controllers: datacenter and machine groups.
func eksaConfigs(cluster *unstructured.Unstructured) []object.Ref {
	var refs []object.Ref
	add := func(from map[string]any, path ...string) {
		r, _, _ := unstructured.NestedStringMap(from, path...)
		if r["kind"] != "" && r["name"] != "" {
			refs = append(refs, object.Ref{Group: eksaGroup, Kind: r["kind"], Namespace: cluster.GetNamespace(), Name: r["name"]})
		}
	}
	add(cluster.Object, "spec", "datacenterRef")
	add(cluster.Object, "spec", "controlPlaneConfiguration", "machineGroupRef")
	add(cluster.Object, "spec", "externalEtcdConfiguration", "machineGroupRef")
	groups, _, _ := unstructured.NestedSlice(cluster.Object, "spec", "workerNodeGroupConfigurations")
	for _, g := range groups {
		if g, ok := g.(map[string]any); ok {
			add(g, "machineGroupRef")
		}
	}
	return refs
}
