package app

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// resourceCounter counts the objects in the caches that already exist. The zero value counts
// nothing.
type resourceCounter struct {
	mu    sync.Mutex
	kinds []cachedKind
}

type cachedKind struct {
	cache client.Reader
	list  client.ObjectList
}

type tally struct {
	unreadable, stalled int
	// since when the object that has been stalled longest is stalled
	since   time.Time
	backups []backup
}

type backup struct {
	namespace, name string
	at              time.Time
}

// add registers kinds. Each kind is given by an empty list.
func (r *resourceCounter) add(cache client.Reader, lists ...client.ObjectList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range lists {
		r.kinds = append(r.kinds, cachedKind{cache, list})
	}
}

// count returns the counts by kind. It omits kinds whose cache is not synced yet.
func (r *resourceCounter) count(ctx context.Context) map[string]tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make(map[string]tally)
	for _, k := range r.kinds {
		list, ok := k.list.DeepCopyObject().(client.ObjectList)
		if !ok || k.cache.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
			continue
		}
		var t tally
		_ = meta.EachListItem(list, func(o runtime.Object) error {
			t.add(o)
			return nil
		})
		counts[strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List")] = t
	}
	return counts
}

// add counts an object. The object belongs to the cache and must not be changed.
func (t *tally) add(o runtime.Object) {
	if stored, ok := o.(interface {
		Unread() *v1alpha1.UnreadablePart
	}); ok && stored.Unread() != nil {
		t.unreadable++
	}
	if s, ok := o.(*v1alpha1.BackupSchedule); ok && s.Status.LastSuccessfulTime != nil {
		t.backups = append(t.backups, backup{s.Namespace, s.Name, s.Status.LastSuccessfulTime.Time})
	}
	conditions, _ := statusOf(o)
	c := meta.FindStatusCondition(*conditions, v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return
	}
	t.stalled++
	if at := c.LastTransitionTime.Time; t.since.IsZero() || at.Before(t.since) {
		t.since = at
	}
}

// statusOf returns the conditions of a scute resource, and whether it needs no further work.
// Callers may change the conditions only in a copy of the object.
func statusOf(o runtime.Object) (conditions *[]metav1.Condition, finished bool) {
	switch o := o.(type) {
	case *v1alpha1.Move:
		return &o.Status.Conditions, o.Status.FinishedAt != nil
	case *v1alpha1.WorkflowRun:
		return &o.Status.Conditions, o.Status.FinishedAt != nil
	case *v1alpha1.Pause:
		return &o.Status.Conditions, o.Status.FinishedAt != nil
	case *v1alpha1.BackupSchedule:
		return &o.Status.Conditions, o.Status.Phase == v1alpha1.BackupEnded
	case *v1alpha1.SurgeRemediation:
		return &o.Status.Conditions, o.Status.FinishedAt != nil
	case *v1alpha1.RepairPolicy:
		return &o.Status.Conditions, true
	case *v1alpha1.RepairLimits:
		return &o.Status.Conditions, true
	default:
		return &[]metav1.Condition{}, true
	}
}
