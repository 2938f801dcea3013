package kube

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"

	"scute.dev/kube/object"
)

// Type describes a kind that an API server serves. Its JSON, in the index of a backup, contains the
// fields that a restore needs.
type Type struct {
	Group  string `json:"group,omitempty"`
	Kind   string `json:"kind"`
	Plural string `json:"plural"`
	// Versions contains the versions that the API server serves, its preferred version first.
	Versions   []string `json:"versions"`
	Namespaced bool     `json:"namespaced"`
	// Contracts are labels of the CustomResourceDefinition, for example "v1beta2".
	Contracts []string `json:"contracts,omitempty"`
	Listable  bool     `json:"-"`
	// Movable and Hierarchy are labels of the CustomResourceDefinition.
	Movable, Hierarchy bool `json:"-"`
	// BlockMove and AcknowledgeTimeout are annotations of the CustomResourceDefinition.
	BlockMove          bool   `json:"-"`
	AcknowledgeTimeout string `json:"-"`
}

// GVK returns the kind in its preferred version.
func (t Type) GVK() schema.GroupVersionKind {
	return schema.GroupVersionKind{Group: t.Group, Version: t.Versions[0], Kind: t.Kind}
}

// Resource returns the resource of the kind in its preferred version.
func (t Type) Resource() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: t.Group, Version: t.Versions[0], Resource: t.Plural}
}

// At returns the kind in another version.
func (t Type) At(version string) Type {
	t.Versions = []string{version}
	return t
}

// GroupKind returns "Kind.group".
func (t Type) GroupKind() string { return object.Ref{Group: t.Group, Kind: t.Kind}.GroupKind() }

// scope returns a namespace, or "" if the kind is cluster-scoped.
func (t Type) scope(namespace string) string {
	if !t.Namespaced {
		return ""
	}
	return namespace
}

// IsCore reports whether the kind is in the core group. Such objects have no conditions and may
// contain secrets, so only their metadata are listed.
func (t Type) IsCore() bool { return t.Group == "" }

// MovableTypes returns the kinds that a move reads: the kinds of Cluster API providers, which have
// a label, Secrets and ConfigMaps. unserved contains the CustomResourceDefinitions that have the
// label, but that the API server does not serve.
func (c *Cluster) MovableTypes(ctx context.Context) (movable []Type, unserved []string, err error) {
	var served []Type
	var undiscovered error
	var asked sync.WaitGroup
	asked.Go(func() { served, undiscovered = c.servedTypes(ctx) })
	labelled, err := c.Definitions(ctx)
	asked.Wait()
	if err := cmp.Or(err, undiscovered); err != nil {
		return nil, nil, err
	}
	if movable, unserved = movableOf(served, labelled); len(unserved) == 0 {
		return movable, nil, nil
	}
	if err := c.waitReady(ctx); err != nil { // an API server that has just started serves them soon
		return nil, nil, err
	}
	if served, err = c.servedTypes(ctx); err != nil {
		return nil, nil, err
	}
	movable, unserved = movableOf(served, labelled)
	return movable, unserved, nil
}

// Definitions returns the metadata of CustomResourceDefinitions with clusterctl's label, by
// "plural.group".
func (c *Cluster) Definitions(ctx context.Context) (map[string]*unstructured.Unstructured, error) {
	labelled := make(map[string]*unstructured.Unstructured)
	return labelled, c.ListMetadata(ctx, crdType(), "", func(u *unstructured.Unstructured) error {
		if _, ok := u.GetLabels()[clusterctlv1.ClusterctlLabel]; ok && u.GetDeletionTimestamp() == nil {
			labelled[u.GetName()] = u
		}
		return nil
	})
}

// WithAnnotations returns the kind with the annotations of its definition, which may be nil.
func (t Type) WithAnnotations(definition *unstructured.Unstructured) Type {
	var annotations map[string]string
	if definition != nil {
		annotations = definition.GetAnnotations()
	}
	_, t.BlockMove = annotations[object.BlockMoveAnnotation]
	t.AcknowledgeTimeout = annotations[object.AcknowledgeTimeoutAnnotation]
	return t
}

// DefinitionName returns the name of the CustomResourceDefinition.
func (t Type) DefinitionName() string { return t.Plural + "." + t.Group }

// ParseAcknowledgeTimeout returns the definition's timeout for acknowledging a pause, or 0.
func (t Type) ParseAcknowledgeTimeout() (time.Duration, error) {
	if t.AcknowledgeTimeout == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(t.AcknowledgeTimeout)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("annotation %s of CustomResourceDefinition %s is %q: write a time above zero, such as 15m", object.AcknowledgeTimeoutAnnotation, t.DefinitionName(), t.AcknowledgeTimeout)
	}
	return d, nil
}

func movableOf(served []Type, labelled map[string]*unstructured.Unstructured) (movable []Type, unserved []string) {
	rest := maps.Clone(labelled)
	types := []Type{
		{Kind: "Secret", Plural: "secrets", Versions: []string{"v1"}, Namespaced: true},
		{Kind: "ConfigMap", Plural: "configmaps", Versions: []string{"v1"}, Namespaced: true},
	}
	for _, t := range served {
		definition, ok := rest[t.DefinitionName()]
		if !ok {
			continue
		}
		delete(rest, t.DefinitionName())
		t = t.WithAnnotations(definition)
		l := definition.GetLabels()
		_, t.Movable = l[object.MoveLabel]
		_, t.Hierarchy = l[object.MoveHierarchyLabel]
		for _, contract := range []string{"v1beta1", "v1beta2"} {
			if _, ok := l[object.CoreGroup+"/"+contract]; ok {
				t.Contracts = append(t.Contracts, contract)
			}
		}
		types = append(types, t)
	}
	slices.SortFunc(types, func(a, b Type) int { return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Kind, b.Kind)) })
	return types, slices.Sorted(maps.Keys(rest))
}

// NamespacedTypes returns the namespaced kinds that can be listed.
func (c *Cluster) NamespacedTypes(ctx context.Context) ([]Type, error) {
	types, err := c.servedTypes(ctx)
	return slices.DeleteFunc(types, func(t Type) bool { return !t.Namespaced || !t.Listable }), err
}

func (c *Cluster) servedTypes(ctx context.Context) ([]Type, error) {
	var lists []*metav1.APIResourceList
	var groups []*metav1.APIGroup
	err := c.Do(ctx, "discover kinds", func(context.Context) (err error) {
		groups, lists, err = c.discovery.ServerGroupsAndResources()
		if discovery.IsGroupDiscoveryFailedError(err) {
			return nil // do not wait for an unavailable aggregated API
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	preferred := make(map[string]string)
	for _, g := range groups {
		preferred[g.Name] = g.PreferredVersion.Version
	}
	var types []Type
	byKind := make(map[schema.GroupKind]int) // index in types
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("%s: discover kinds: %w", c.Name, err)
		}
		for _, r := range list.APIResources {
			gk := schema.GroupKind{Group: gv.Group, Kind: r.Kind}
			if strings.Contains(r.Name, "/") {
				continue // a subresource
			}
			if _, known := byKind[gk]; !known {
				byKind[gk] = len(types)
				types = append(types, Type{Group: gv.Group, Kind: r.Kind, Plural: r.Name, Namespaced: r.Namespaced})
			}
			t := &types[byKind[gk]]
			t.Listable = t.Listable || slices.Contains(r.Verbs, "list")
			if gv.Version == preferred[gv.Group] {
				t.Versions = slices.Insert(t.Versions, 0, gv.Version)
			} else {
				t.Versions = append(t.Versions, gv.Version)
			}
		}
	}
	return types, nil
}

func crdType() Type {
	return Type{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition", Plural: "customresourcedefinitions", Versions: []string{"v1"}}
}
