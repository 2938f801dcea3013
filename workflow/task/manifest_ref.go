package task

import (
	"cmp"
	"context"
	"encoding/base64"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/workflow"
)

// ObjectRef names one object of a cluster.
type ObjectRef struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	// Namespace defaults to the run's; it is left out for a kind of the whole cluster.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
}

func refOf(u *unstructured.Unstructured) ObjectRef {
	return ObjectRef{APIVersion: u.GetAPIVersion(), Kind: u.GetKind(), Namespace: u.GetNamespace(), Name: u.GetName()}
}

func (r ObjectRef) gvk() schema.GroupVersionKind {
	return schema.FromAPIVersionAndKind(r.APIVersion, r.Kind)
}

// String is for people: "Machine.cluster.x-k8s.io fleet/prod-abc".
func (r ObjectRef) String() string { return r.plain().String() }

// plain is the reference without the version: an object keeps it over an upgrade of its kind.
func (r ObjectRef) plain() object.Ref {
	gvk := r.gvk()
	return object.Ref{Group: gvk.Group, Kind: gvk.Kind, Namespace: r.Namespace, Name: r.Name}
}

func (r ObjectRef) secret() bool { return r.Kind == "Secret" && r.gvk().Group == "" }

func (r ObjectRef) check(field string) (problems []workflow.Problem) {
	for _, f := range []struct{ name, value string }{{"apiVersion", r.APIVersion}, {"kind", r.Kind}, {"name", r.Name}} {
		if f.value == "" {
			problems = append(problems, workflow.Problem{Field: field + "." + f.name, Message: "it is empty", Remedy: "give apiVersion, kind and name of the object"})
		}
	}
	return problems
}

// compareRefs orders references.
func compareRefs(a, b ObjectRef) int {
	return cmp.Or(object.Compare(a.plain(), b.plain()), cmp.Compare(a.APIVersion, b.APIVersion))
}

// mapping asks the API server for a kind. known is false if it has none such, which may change: its definition may come.
func (cl *Cluster) mapping(ctx context.Context, gvk schema.GroupVersionKind) (m *meta.RESTMapping, known bool, err error) {
	err = cl.Kube.Do(ctx, "discover "+gvk.Kind, func(context.Context) error {
		m, err = cl.Client.RESTMapper().RESTMapping(gvk.GroupKind(), gvk.Version)
		if known = err == nil; known || meta.IsNoMatchError(err) || apierrors.IsNotFound(err) {
			return nil
		}
		return err
	})
	return m, known, err
}

// qualify gives a reference its namespace: the default where the kind has one, none where it has not.
func (cl *Cluster) qualify(ctx context.Context, ref ObjectRef, namespace string) (_ ObjectRef, known bool, err error) {
	m, known, err := cl.mapping(ctx, ref.gvk())
	if err != nil || !known {
		return ref, false, err
	}
	if m.Scope.Name() == meta.RESTScopeNameNamespace {
		ref.Namespace = orElse(ref.Namespace, namespace)
	} else {
		ref.Namespace = ""
	}
	return ref, true, nil
}

// find reads an object; nil without an error if it is not there, or its kind is not.
func (cl *Cluster) find(ctx context.Context, ref ObjectRef) (*unstructured.Unstructured, error) {
	if _, known, err := cl.mapping(ctx, ref.gvk()); err != nil || !known {
		return nil, err
	}
	u := &unstructured.Unstructured{}
	u.SetGroupVersionKind(ref.gvk())
	err := cl.Kube.Do(ctx, "get "+ref.String(), func(ctx context.Context) error {
		return cl.Client.Get(ctx, types.NamespacedName{Namespace: ref.Namespace, Name: ref.Name}, u)
	})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil //nolint:nilnil // absence is an answer
	case err != nil:
		return nil, err
	}
	return u, nil
}

func decode64(text string) ([]byte, error) {
	data, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return nil, fmt.Errorf("decoding: %w", err)
	}
	return data, nil
}
