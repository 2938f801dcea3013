package act

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// keep puts scute's deletion hook on the machine, with the note by which it is known as scute's, in one write. A machine of a control
// plane is refused, whatever was decided: its member of etcd votes until the last hook is gone. One that has the note is left alone: where
// the hook is missing, somebody has released it.
func (d *execution) keep(ctx context.Context) error {
	return d.onMachine(ctx, true, func(m *clusterv1.Machine) error {
		_, plane := m.Labels[clusterv1.MachineControlPlaneLabel]
		switch {
		case plane || d.ofControlPlane():
			return foreign("it is a machine of a control plane, which would remain a voter of etcd")
		case has(m, object.KeptAnnotation), !m.DeletionTimestamp.IsZero():
			return nil
		}
		if err := d.allowed(ctx, m); err != nil {
			return err
		}
		annotate(m, remediator.KeepHook, d.Value)
		return noteKept(m, remediator.KeepNote{Owner: d.facts.Owner.Owner})
	})
}

// setApart takes off the labels by which the machine's MachineSet selects it, all but that of the cluster, and notes them. A MachineSet
// counts machines that are being deleted: with this one it would create no other for it, and no replacement for another. Where that
// cannot be done, the machine is released.
func (d *execution) setApart(ctx context.Context) error {
	return d.onMachine(ctx, false, func(m *clusterv1.Machine) error {
		note, noted := remediator.KeepNoteOf(m.Annotations)
		if !noted || note.Apart || !has(m, remediator.KeepHook) || m.DeletionTimestamp.IsZero() {
			return nil
		}
		selector, err := d.selector(ctx, m)
		if err != nil {
			return err
		}
		note.Apart, note.Owner = true, d.facts.Owner.Owner
		if taken, apart := without(m.Labels, selector); apart {
			note.Labels = taken
			for key := range taken {
				delete(m.Labels, key)
			}
		} else {
			delete(m.Annotations, remediator.KeepHook)
		}
		return noteKept(m, note)
	})
}

// without are those of the labels that a selector is about, but for that of the cluster; apart says that it selects no machine without
// them.
func without(have map[string]string, by labels.Selector) (taken map[string]string, apart bool) {
	requirements, _ := by.Requirements()
	taken, left := make(map[string]string), maps.Clone(have)
	for _, r := range requirements {
		if value, there := left[r.Key()]; there && r.Key() != clusterv1.ClusterNameLabel {
			taken[r.Key()] = value
			delete(left, r.Key())
		}
	}
	return taken, !by.Matches(labels.Set(left))
}

// selector is that of the machine's MachineSet. It selects nothing where that is gone.
func (d *execution) selector(ctx context.Context, m *clusterv1.Machine) (labels.Selector, error) {
	by := metav1.GetControllerOfNoCopy(m)
	if by == nil || by.Kind != string(remediator.Set) {
		return labels.Nothing(), nil
	}
	set := &clusterv1.MachineSet{}
	err := d.get(ctx, types.NamespacedName{Namespace: m.Namespace, Name: by.Name}, set)
	switch {
	case apierrors.IsNotFound(err), err == nil && set.UID != by.UID:
		return labels.Nothing(), nil
	case err != nil:
		return nil, err
	case set.Status.ObservedGeneration < set.Generation:
		return nil, foreign("MachineSet %s has not seen its last change yet", set.Name)
	}
	selector, err := metav1.LabelSelectorAsSelector(&set.Spec.Selector)
	if err != nil {
		return nil, fmt.Errorf("reading the selector of MachineSet %s: %w", set.Name, err)
	}
	return selector, nil
}

// releaseKept takes the hook off. The note of a machine that is being deleted stays: it is what scute knows it by until it is gone.
func (d *execution) releaseKept(ctx context.Context) error {
	return d.onMachine(ctx, false, func(m *clusterv1.Machine) error {
		if !has(m, object.KeptAnnotation) {
			return nil
		}
		delete(m.Annotations, remediator.KeepHook)
		if m.DeletionTimestamp.IsZero() {
			delete(m.Annotations, object.KeptAnnotation)
		}
		return nil
	})
}

func noteKept(m *clusterv1.Machine, note remediator.KeepNote) error {
	value, err := json.Marshal(note)
	if err != nil {
		return fmt.Errorf("noting what is kept: %w", err)
	}
	annotate(m, object.KeptAnnotation, string(value))
	return nil
}
