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

// resources counts the objects of scute's kinds, in the caches that hold them anyway. The zero value counts nothing.
type resources struct {
	mu   sync.Mutex
	kept []kept
}

// kept is a kind that a cache holds.
type kept struct {
	cache client.Reader
	list  client.ObjectList
}

// tally is what is counted of one kind.
type tally struct {
	unreadable, stalled int
	// since is when the first of the stalled ones stalled.
	since time.Time
}

// in adds kinds, by empty lists of them.
func (r *resources) in(cache client.Reader, lists ...client.ObjectList) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, list := range lists {
		r.kept = append(r.kept, kept{cache, list})
	}
}

// each calls fn for every object of a kind and returns its name; none if its cache is not synced. fn must change nothing.
func (k kept) each(ctx context.Context, fn func(runtime.Object)) (kind string, ok bool) {
	list, ok := k.list.DeepCopyObject().(client.ObjectList)
	if !ok || k.cache.List(ctx, list, client.UnsafeDisableDeepCopy) != nil {
		return "", false
	}
	_ = meta.EachListItem(list, func(o runtime.Object) error {
		fn(o)
		return nil
	})
	return strings.TrimSuffix(reflect.TypeOf(list).Elem().Name(), "List"), true
}

// count is the tally by kind; a kind whose cache is not synced is left out.
func (r *resources) count(ctx context.Context) map[string]tally {
	r.mu.Lock()
	defer r.mu.Unlock()
	counts := make(map[string]tally)
	for _, k := range r.kept {
		var t tally
		if kind, ok := k.each(ctx, t.add); ok {
			counts[kind] = t
		}
	}
	return counts
}

// lastBackups calls fn for each BackupSchedule that has made a backup.
func (r *resources) lastBackups(ctx context.Context, fn func(namespace, name string, last time.Time)) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.kept {
		if _, ok := k.list.(*v1alpha1.BackupScheduleList); !ok {
			continue
		}
		k.each(ctx, func(o runtime.Object) {
			if s, ok := o.(*v1alpha1.BackupSchedule); ok && s.Status.LastSuccessfulTime != nil {
				fn(s.Namespace, s.Name, s.Status.LastSuccessfulTime.Time)
			}
		})
	}
}

func (t *tally) add(o runtime.Object) {
	if stored, ok := o.(interface {
		Unread() *v1alpha1.UnreadablePart
	}); ok && stored.Unread() != nil {
		t.unreadable++
	}
	c := meta.FindStatusCondition(conditionsOf(o), v1alpha1.ConditionStalled)
	if c == nil || c.Status != metav1.ConditionTrue {
		return
	}
	t.stalled++
	if at := c.LastTransitionTime.Time; t.since.IsZero() || at.Before(t.since) {
		t.since = at
	}
}

func conditionsOf(o runtime.Object) []metav1.Condition {
	switch o := o.(type) {
	case *v1alpha1.Move:
		return o.Status.Conditions
	case *v1alpha1.WorkflowRun:
		return o.Status.Conditions
	case *v1alpha1.Pause:
		return o.Status.Conditions
	case *v1alpha1.BackupSchedule:
		return o.Status.Conditions
	case *v1alpha1.SurgeRemediation:
		return o.Status.Conditions
	case *v1alpha1.RepairPolicy:
		return o.Status.Conditions
	case *v1alpha1.RepairLimits:
		return o.Status.Conditions
	default:
		return nil
	}
}
