package moves

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// Logged reads Moves from the event log: it folds what is written there.
type Logged struct {
	Log *reach.Log
	// Replaying is told how far the replay is, Replayed that it is over; nil tells nobody.
	Replaying func(seq uint64)
	Replayed  func()
}

// Get folds the log and takes the newest move of that name.
func (l *Logged) Get(ctx context.Context, key types.NamespacedName) (*v1alpha1.Move, error) {
	view, _, err := l.fold(ctx)
	if err != nil {
		return nil, err
	}
	id, err := l.newest(view, key)
	if err != nil {
		return nil, err
	}
	return Resource(view, id), nil
}

// List folds the log: the newest move of each name.
func (l *Logged) List(ctx context.Context, namespace string) ([]v1alpha1.Move, error) {
	view, _, err := l.fold(ctx)
	if err != nil {
		return nil, err
	}
	var list []v1alpha1.Move
	for _, id := range view.IDs() {
		m := Resource(view, id)
		if namespace != "" && m.Namespace != namespace {
			continue
		}
		if latest, _ := l.newest(view, types.NamespacedName{Namespace: m.Namespace, Name: m.Name}); latest == id {
			list = append(list, *m)
		}
	}
	return list, nil
}

// errEnough ends a replay that has seen what it waited for.
var errEnough = errors.New("enough")

// Watch folds the log and goes on folding. In a folder nothing can follow: then a move that is not over ends it with
// ErrStill.
func (l *Logged) Watch(ctx context.Context, key types.NamespacedName, fn func(*v1alpha1.Move) bool) error {
	view, head, err := l.fold(ctx)
	if err != nil {
		return err
	}
	id, err := l.newest(view, key)
	if err != nil {
		return err
	}
	if fn(Resource(view, id)) {
		return nil
	}
	if l.Log.Static {
		return fmt.Errorf("move %s: %w", key, ErrStill)
	}
	err = l.Log.Follow(ctx, head, func(r eventlog.Record) error {
		_ = view.Apply(r) // what cannot be read is told in the move's status
		if r.Aggregate.Kind == eventlog.KindMove && r.Aggregate.ID == id && fn(Resource(view, id)) {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (l *Logged) fold(ctx context.Context) (view *runner.Moves, head uint64, err error) {
	view = runner.NewMoves(nil)
	head, err = l.Log.Replay(ctx, 0, func(r eventlog.Record) error {
		if l.Replaying != nil {
			l.Replaying(r.Seq)
		}
		_ = view.Apply(r) // what cannot be read is told in the move's status
		return nil
	})
	if l.Replayed != nil {
		l.Replayed()
	}
	if err != nil {
		return nil, 0, fmt.Errorf("reading the log at %s: %w", l.Log.Where, err)
	}
	return view, head, nil
}

// newest is the id of the move that was last asked for under a name: a name can be used again. Without a namespace it
// is looked for in all.
func (l *Logged) newest(view *runner.Moves, key types.NamespacedName) (id string, err error) {
	var at time.Time
	namespaces := make(map[string]bool)
	for _, candidate := range view.IDs() {
		spec, _ := view.Spec(candidate)
		if spec.Name != key.Name || key.Namespace != "" && spec.Namespace != key.Namespace {
			continue
		}
		namespaces[spec.Namespace] = true
		status, _ := view.Status(candidate)
		if started := status.StartedAt; id == "" || started != nil && at.Before(started.Time) {
			id = candidate
			if started != nil {
				at = started.Time
			}
		}
	}
	switch {
	case id == "":
		return "", notFound(key, "in the log at "+l.Log.Where)
	case len(namespaces) > 1:
		return "", fmt.Errorf("moves of the name %s are in several namespaces: choose one with -n: %s", key.Name, strings.Join(slices.Sorted(maps.Keys(namespaces)), ", "))
	}
	return id, nil
}

// Resource is a move of the log as the resource that asked for it.
func Resource(view *runner.Moves, id string) *v1alpha1.Move {
	spec, _ := view.Spec(id)
	status, _ := view.Status(id)
	return FromLog(spec, status)
}

// FromLog is the resource that a spec in the log was made from, and its status.
func FromLog(spec mover.Spec, status v1alpha1.MoveStatus) *v1alpha1.Move {
	rollback := !spec.KeepFailed
	m := &v1alpha1.Move{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Move"},
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.Name},
		Spec: v1alpha1.MoveSpec{
			Target:    v1alpha1.MoveTarget{KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: spec.Target.SecretName, Key: spec.Target.SecretKey}},
			Selection: v1alpha1.MoveSelection{Clusters: spec.Clusters, All: spec.All},
			Timeouts: v1alpha1.MoveTimeouts{
				Acknowledge: duration(spec.Acknowledge), Create: duration(spec.Create), Awake: duration(spec.Awake),
			},
			DryRun: spec.DryRun, RollbackOnFailure: &rollback, CarryStatus: spec.CarryStatus,
		},
		Status: status,
	}
	for kind, d := range spec.AckKinds {
		if m.Spec.Timeouts.AcknowledgeKinds == nil {
			m.Spec.Timeouts.AcknowledgeKinds = make(map[string]metav1.Duration)
		}
		m.Spec.Timeouts.AcknowledgeKinds[kind] = *duration(d)
	}
	if status.StartedAt != nil {
		m.CreationTimestamp = *status.StartedAt
	}
	return m
}

func duration(d mover.Duration) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(d)} }
