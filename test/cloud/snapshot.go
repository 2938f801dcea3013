package cloud

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemoryclient "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime/client"
)

// Snapshot maps the name of each object in the cloud to its identity. Two snapshots are equal if and only if nothing
// was created, deleted or replaced in between. Changes of the content do not count, except those of a machine.
type Snapshot map[string]string

// Snapshot reads the cloud. It is not atomic across several workload clusters.
func (c *Cloud) Snapshot(ctx context.Context) (Snapshot, error) {
	s := Snapshot{}
	for _, cluster := range c.Clusters() {
		objects := c.backend.GetResourceGroup(cluster).GetClient()
		for _, gvk := range c.kinds() {
			if err := s.add(ctx, cluster, gvk, objects); err != nil {
				if !slices.Contains(c.Clusters(), cluster) {
					break // deleted during the read
				}
				return nil, fmt.Errorf("reading the %s objects of %s in the cloud: %w", gvk.Kind, cluster, err)
			}
		}
	}
	return s, nil
}

func (s Snapshot) add(ctx context.Context, cluster string, gvk schema.GroupVersionKind, objects inmemoryclient.Client) error {
	if gvk.Kind == MachineKind {
		return s.addMachines(ctx, cluster, objects)
	}
	// Patched objects are stored untyped and do not fit into a typed list.
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	if err := objects.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		object := &list.Items[i]
		identity := "created " + object.GetCreationTimestamp().UTC().Format(time.RFC3339)
		if id := object.GetAnnotations()[cloudv1.EtcdMemberIDAnnotationName]; id != "" {
			identity += " etcd member " + id
		}
		if object.GetDeletionTimestamp() != nil {
			identity += " deleting"
		}
		s[fmt.Sprintf("%s %s %s", cluster, gvk.Kind, nameOf(object))] = identity
	}
	return nil
}

// addMachines identifies machines by more than the second of their creation, so that a machine that was recreated at
// once with the same name is a different one.
func (s Snapshot) addMachines(ctx context.Context, cluster string, objects inmemoryclient.Client) error {
	list := &cloudv1.CloudMachineList{}
	if err := objects.List(ctx, list); err != nil {
		return err
	}
	for i := range list.Items {
		machine := &list.Items[i]
		identity := fmt.Sprintf("created %s version %s", machine.CreationTimestamp.UTC().Format(time.RFC3339Nano), machine.ResourceVersion)
		if machine.DeletionTimestamp != nil {
			identity += " deleting"
		}
		s[fmt.Sprintf("%s %s %s", cluster, MachineKind, machine.Name)] = identity
	}
	return nil
}

// Machines returns the names of the machines that a workload cluster has in the cloud, in order.
func (c *Cloud) Machines(ctx context.Context, cluster string) ([]string, error) {
	list := &cloudv1.CloudMachineList{}
	if err := c.backend.GetResourceGroup(cluster).GetClient().List(ctx, list); err != nil {
		return nil, fmt.Errorf("reading the machines of %s in the cloud: %w", cluster, err)
	}
	names := make([]string, 0, len(list.Items))
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	slices.Sort(names)
	return names, nil
}

// kinds returns every kind that the cloud can have, in order.
func (c *Cloud) kinds() []schema.GroupVersionKind {
	known := c.backend.GetScheme().AllKnownTypes()
	var kinds []schema.GroupVersionKind
	for gvk := range known {
		if _, listed := known[gvk.GroupVersion().WithKind(gvk.Kind+"List")]; listed {
			kinds = append(kinds, gvk)
		}
	}
	slices.SortFunc(kinds, func(a, b schema.GroupVersionKind) int { return strings.Compare(a.String(), b.String()) })
	return kinds
}

// String returns one line per object, in order. Equal snapshots have equal strings.
func (s Snapshot) String() string {
	var b strings.Builder
	for _, name := range slices.Sorted(maps.Keys(s)) {
		fmt.Fprintf(&b, "%s: %s\n", name, s[name])
	}
	return b.String()
}

// Diff returns one line per object that was created, deleted or replaced between s and later, and none if they are
// equal.
func (s Snapshot) Diff(later Snapshot) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(s)) {
		now, exists := later[name]
		switch {
		case !exists:
			lines = append(lines, fmt.Sprintf("removed %s (%s)", name, s[name]))
		case now != s[name]:
			lines = append(lines, fmt.Sprintf("replaced %s: was %s, is %s", name, s[name], now))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(later)) {
		if _, existed := s[name]; !existed {
			lines = append(lines, fmt.Sprintf("made %s (%s)", name, later[name]))
		}
	}
	return lines
}
