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

// Resource describes a kind of scute's resources that are the things of a noun.
type Resource[T client.Object] struct {
	// Kind of the resource: "Move".
	Kind    string
	New     func() T
	NewList func() client.ObjectList
	// In is the kind of the aggregates that have the events. Begin starts the fold of one.
	In    eventlog.Kind
	Begin func(id string) source.Fold[T]
	// Status returns the phase, the ID in the log, and the conditions of a resource.
	Status func(T) (phase, id string, conditions []metav1.Condition)
}

// Fill sets the fields of a noun that follow from its resource.
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
			return eventlog.Aggregate{Kind: r.In, ID: id}, id != ""
		}
	}
	n.InCluster = func(c *connect.Cluster, notice func(error)) source.Source[T] {
		return &source.Cluster[T, T]{Cluster: c, Noun: n.Name, Notice: notice, New: r.New, NewList: r.NewList, Of: func(t T) T { return t }}
	}
	n.InLog = func(log *connect.Log) *source.Logged[T] {
		return &source.Logged[T]{Log: log, Kind: r.In, Noun: n.Name, Key: n.Key, Begin: r.Begin}
	}
	return n
}

// data returns one resource, or a list.
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
	_ = meta.SetList(all, items) // they are what the list has; of none it makes an empty list, which programs can go through
	return all
}

// Duration returns a duration of an event as a resource has it.
func Duration[D ~int64](d D) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: time.Duration(d)}
}

// Durations returns the durations of kinds in an event as a resource has them.
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

// Selector returns the label selector of an event as a resource has it; nil if the event has none.
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
