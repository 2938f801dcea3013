package remediation

import (
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// Fold is the state of one owner of machines, computed from its commits.
type Fold struct {
	State   remediator.State
	catalog *eventlog.Catalog[remediator.Event]
	seq     uint64
}

// NewFold returns a Fold without commits.
func NewFold() *Fold { return &Fold{catalog: remediator.NewCatalog()} }

// Apply applies a commit. An error leaves the state unchanged.
func (f *Fold) Apply(r eventlog.Record) error {
	if r.Seq <= f.seq {
		return nil
	}
	if err := f.catalog.Fold(r, f.State.Apply); err != nil {
		return fmt.Errorf("commit %d: %w: use the scutectl that belongs to the daemon, or a newer one", r.Seq, err)
	}
	f.seq = r.Seq
	return nil
}

// Items returns the remediations of the owner's machines, sorted by machine.
func (f *Fold) Items() (items []*v1alpha1.SurgeRemediation) {
	machines := make(map[string]types.UID)
	for _, e := range f.State.History {
		machines[e.Victim.Name] = e.Victim.UID
	}
	for uid, u := range f.State.Unhealthy {
		if u.Mark.State != "" {
			machines[u.Name] = uid
		}
	}
	for _, a := range f.State.InProgress() {
		machines[a.Victim.Name] = a.Victim.UID
	}
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		if r, ok := f.resource(name, machines[name]); ok {
			items = append(items, r)
		}
	}
	return items
}

func (f *Fold) resource(machine string, uid types.UID) (*v1alpha1.SurgeRemediation, bool) {
	status, ok := remediator.Status(&f.State, uid)
	if !ok {
		return nil, false
	}
	status.RemediationID, status.LogSequence = f.State.Owner.Remediation(machine), int64(f.seq) //nolint:gosec // a sequence is far below 2^63
	r := &v1alpha1.SurgeRemediation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "SurgeRemediation"},
		ObjectMeta: metav1.ObjectMeta{Namespace: f.State.Owner.Namespace, Name: machine},
		Status:     status,
	}
	if status.MarkedAt != nil {
		r.CreationTimestamp = *status.MarkedAt
	}
	if u := f.State.Unhealthy[uid]; u != nil {
		r.Spec.Abort = u.Aborted
		if u.Held {
			r.Spec.Hold = &v1alpha1.RemediationHold{Reason: u.HoldReason}
			if !u.HoldUntil.IsZero() {
				r.Spec.Hold.Until = &metav1.Time{Time: u.HoldUntil}
			}
		}
	}
	return r, true
}

// finished reports whether nothing more happens without a user.
func finished(r *v1alpha1.SurgeRemediation) bool {
	return slices.Contains([]v1alpha1.RemediationPhase{
		v1alpha1.RemediationSucceeded, v1alpha1.RemediationFailed, v1alpha1.RemediationCancelled,
		v1alpha1.RemediationRecovered, v1alpha1.RemediationUnselected,
	}, r.Status.Phase)
}

// IsOpen reports whether scute still works on the machine, and may have annotated it.
func IsOpen(r *v1alpha1.SurgeRemediation) bool {
	return r.Status.FinishedAt == nil && r.Status.Phase != v1alpha1.RemediationUnselected
}

// inProgress reports whether scute has requested a replacement from the owner.
func inProgress(p v1alpha1.RemediationPhase) bool {
	return slices.Contains([]v1alpha1.RemediationPhase{
		v1alpha1.RemediationSurging, v1alpha1.RemediationReplacing, v1alpha1.RemediationRemoving, v1alpha1.RemediationCancelling,
	}, p)
}

// succeeded reports whether the machine is healthy again, or was replaced.
func succeeded(p v1alpha1.RemediationPhase) bool {
	return p == v1alpha1.RemediationSucceeded || p == v1alpha1.RemediationRecovered
}
