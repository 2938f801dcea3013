package moves

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/mover/runner"
)

// Logged reads Moves from the event log: a name can be used again, and the one that was asked for last is meant.
type Logged = source.Logged[*v1alpha1.Move]

// InLog reads the event log.
func InLog(log *reach.Log) *Logged {
	return &Logged{
		Log: log, Kind: eventlog.KindMove, Noun: noun,
		Begin: func(id string) source.Fold[*v1alpha1.Move] { return &fold{id: id, view: runner.NewMoves(nil)} },
	}
}

// fold is one move of the log.
type fold struct {
	id   string
	view *runner.Moves
}

func (f *fold) Apply(r eventlog.Record) error {
	_ = f.view.Apply(r) // what cannot be read is told in the move's status
	return nil
}

func (f *fold) Items() []source.Item[*v1alpha1.Move] {
	spec, known := f.view.Spec(f.id)
	if !known {
		return nil
	}
	status, _ := f.view.Status(f.id)
	key := types.NamespacedName{Namespace: spec.Namespace, Name: spec.Name}
	return []source.Item[*v1alpha1.Move]{{Key: key, Value: FromLog(spec, status)}}
}

// FromLog is the resource that a spec in the log was made from, and its status.
func FromLog(spec mover.Spec, status v1alpha1.MoveStatus) *v1alpha1.Move {
	rollback := !spec.KeepFailed
	m := &v1alpha1.Move{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Move"},
		ObjectMeta: metav1.ObjectMeta{Namespace: spec.Namespace, Name: spec.Name},
		Spec: v1alpha1.MoveSpec{
			Target:    v1alpha1.MoveTarget{KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: spec.Target.SecretName, Key: spec.Target.SecretKey}, AllowInsecure: spec.Target.AllowInsecure},
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
			m.Spec.Timeouts.AcknowledgeKinds = make(map[string]v1alpha1.Duration)
		}
		m.Spec.Timeouts.AcknowledgeKinds[kind] = *duration(d)
	}
	if status.StartedAt != nil {
		m.CreationTimestamp = *status.StartedAt
	}
	return m
}

func duration(d mover.Duration) *v1alpha1.Duration {
	return &v1alpha1.Duration{Duration: time.Duration(d)}
}
