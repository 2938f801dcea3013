package kit

import (
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
)

// Resource describes the kind of scute's API that a noun represents.
type Resource[T client.Object] struct {
	// Kind is the kind in the API: "Move".
	Kind    string
	New     func() T
	NewList func() client.ObjectList
	// AggregateKind is the kind of the aggregates with the events. Begin starts the fold of one aggregate.
	AggregateKind eventlog.Kind
	NewFold       func(id string) source.Fold[T]
	// Status returns the phase, the ID in the log, and the conditions of an object.
	Status func(T) (phase, id string, conditions []metav1.Condition)
}

// Fill sets the fields of a noun that follow from the kind.
func (r Resource[T]) Fill(n *Noun[T]) *Noun[T] {
	n.Resource = strings.ToLower(r.Kind) + "." + v1alpha1.GroupVersion().Group
	n.Key = func(t T) types.NamespacedName { return Key(t.GetNamespace(), t.GetName()) }
	n.Data = r.data
	n.Phase = func(t T) string {
		phase, _, _ := r.Status(t)
		return phase
	}
	n.Conditions = func(t T) []metav1.Condition {
		_, _, conditions := r.Status(t)
		return conditions
	}
	if n.Log == nil {
		n.Log = func(t T) (eventlog.Aggregate, bool) {
			_, id, _ := r.Status(t)
			return eventlog.Aggregate{Kind: r.AggregateKind, ID: id}, id != ""
		}
	}
	n.InCluster = func(c *connect.Cluster, notice func(error)) source.Source[T] {
		return &source.Cluster[T, T]{Cluster: c, Noun: n.Name, Notice: notice, New: r.New, NewList: r.NewList, Convert: func(t T) T { return t }}
	}
	n.InLog = func(log *connect.Log) *source.Log[T] {
		return &source.Log[T]{Log: log, Kind: r.AggregateKind, Noun: n.Name, Key: n.Key, NewFold: r.NewFold}
	}
	return n
}

// data returns one object, or a list.
func (r Resource[T]) data(things []T, one bool) any {
	group, items := v1alpha1.GroupVersion(), make([]runtime.Object, len(things))
	for i, t := range things {
		t.GetObjectKind().SetGroupVersionKind(group.WithKind(r.Kind))
		items[i] = t
	}
	if one {
		return items[0]
	}
	all := r.NewList()
	all.GetObjectKind().SetGroupVersionKind(group.WithKind(r.Kind + "List"))
	_ = meta.SetList(all, items) // the items have the list's type; an empty list becomes [], not null
	return all
}

// Duration converts a duration of an event to the API's type.
func Duration[D ~int64](d D) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: time.Duration(d)}
}

// Durations converts durations of an event by kind to the API's type.
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

// Selector converts the label selector of an event to the API's type; it returns nil if the event has none.
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
