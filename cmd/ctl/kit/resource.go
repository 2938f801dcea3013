package kit

import (
	"context"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
)

// Resource sets the fields of a noun that follow from its kind in scute's API, for example "Move".
// If the noun describes itself, status needs only the phase, the ID and the conditions.
func Resource[T client.Object](n *Noun[T], kind string, status func(T) Status) *Noun[T] {
	n.Resource = strings.ToLower(kind) + "." + v1alpha1.GroupVersion().Group
	n.Key = func(t T) types.NamespacedName { return Key(t.GetNamespace(), t.GetName()) }
	n.Phase = func(t T) string { return status(t).Phase }
	n.Conditions = func(t T) []metav1.Condition { return status(t).Conditions }
	if n.Log == nil {
		n.Log = func(t T) (eventlog.Aggregate, bool) {
			id := status(t).ID
			return eventlog.Aggregate{Kind: n.Kind, ID: id}, id != ""
		}
	}
	if n.Describe == nil {
		n.Describe = func(_ context.Context, p *Session[T], t T) ([]string, error) {
			return p.View().Describe(kind, t, status(t)), nil
		}
		n.StatusLines = func(v View, t T) []string { return v.Status(status(t)) }
	}
	n.Convert = func(o runtime.Object) T {
		t, _ := o.(T) // New and NewList return nothing else
		return t
	}
	n.Data = func(list []T, one bool) any { return resources(n.NewList(), kind, list, one) }
	return n
}

// resources returns the first resource if one is set, otherwise a list of all resources. It sets
// their kinds.
func resources[T client.Object](list client.ObjectList, kind string, all []T, one bool) any {
	group, items := v1alpha1.GroupVersion(), make([]runtime.Object, len(all))
	for i, t := range all {
		t.GetObjectKind().SetGroupVersionKind(group.WithKind(kind))
		items[i] = t
	}
	if one {
		return items[0]
	}
	list.GetObjectKind().SetGroupVersionKind(group.WithKind(kind + "List"))
	_ = meta.SetList(list, items) // the items have the list's type; an empty list becomes [], not null
	return list
}

// Duration converts a duration in an event to the type of the API.
func Duration[D ~int64](d D) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: time.Duration(d)}
}

// Durations converts the durations in an event, by kind, to the type of the API.
func Durations[D ~int64](of map[string]D) map[string]v1alpha1.Duration {
	if len(of) == 0 {
		return nil
	}
	out := make(map[string]v1alpha1.Duration, len(of))
	for kind, d := range of {
		out[kind] = *Duration(d)
	}
	return out
}

// Selector converts a label selector in an event to the type of the API. given is false if the
// event has no selector.
func Selector(given bool, text string) *metav1.LabelSelector {
	if !given {
		return nil
	}
	selector, err := metav1.ParseToLabelSelector(text)
	if err != nil {
		return &metav1.LabelSelector{}
	}
	return selector
}
