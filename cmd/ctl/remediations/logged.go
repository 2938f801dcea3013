package remediations

import (
	"maps"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/source"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// Logged reads remediations from the event log: those that are in progress, and the last ones that ended.
type Logged = source.Logged[*v1alpha1.SurgeRemediation]

// InLog reads the event log.
func InLog(log *reach.Log) *Logged {
	return &Logged{
		Log: log, Kind: eventlog.KindRemediation, Noun: noun,
		Begin: func(string) source.Fold[*v1alpha1.SurgeRemediation] { return NewFold() },
		// An owner that was created again has other machines.
		May: func(id string, key types.NamespacedName) bool {
			return key.Namespace == "" || strings.HasPrefix(id, key.Namespace+"/")
		},
	}
}

// Fold is one owner of machines, folded from its commits.
type Fold struct {
	State   remediator.State
	catalog *eventlog.Catalog[remediator.Event]
	seq     uint64
}

// NewFold begins with nothing.
func NewFold() *Fold { return &Fold{catalog: remediator.NewCatalog()} }

// Apply folds a commit in. On an error nothing has changed.
func (f *Fold) Apply(r eventlog.Record) error {
	if r.Seq <= f.seq {
		return nil
	}
	if err := f.catalog.Fold(r, f.State.Apply); err != nil {
		return err
	}
	f.seq = r.Seq
	return nil
}

// Items are the owner's machines that the log has something to say of, by name.
func (f *Fold) Items() []source.Item[*v1alpha1.SurgeRemediation] {
	machines := make(map[string]types.UID)
	for _, e := range f.State.Ends {
		machines[e.Victim.Name] = e.Victim.UID
	}
	for uid, p := range f.State.Patients {
		if p.Mark != nil {
			machines[p.Name] = uid
		}
	}
	if a := f.State.Active; a != nil {
		machines[a.Victim.Name] = a.Victim.UID
	}
	var items []source.Item[*v1alpha1.SurgeRemediation]
	for _, name := range slices.Sorted(maps.Keys(machines)) {
		if r, ok := f.resource(name, machines[name]); ok {
			items = append(items, source.Item[*v1alpha1.SurgeRemediation]{Key: types.NamespacedName{Namespace: r.Namespace, Name: r.Name}, Value: r})
		}
	}
	return items
}

// resource is the remediation as the SurgeRemediation that shows it.
func (f *Fold) resource(machine string, uid types.UID) (*v1alpha1.SurgeRemediation, bool) {
	status, ok := remediator.Status(&f.State, uid)
	if !ok {
		return nil, false
	}
	status.RemediationID, status.LogSequence = f.State.Owner.Remediation(machine), int64(f.seq) //nolint:gosec // a sequence stays far below 2^63
	r := &v1alpha1.SurgeRemediation{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "SurgeRemediation"},
		ObjectMeta: metav1.ObjectMeta{Namespace: f.State.Owner.Namespace, Name: machine},
		Status:     status,
	}
	if status.MarkedAt != nil {
		r.CreationTimestamp = *status.MarkedAt
	}
	if p := f.State.Patients[uid]; p != nil {
		r.Spec.Abort = p.Aborted
		if p.Held {
			r.Spec.Hold = &v1alpha1.RemediationHold{Reason: p.HoldWhy}
			if !p.HoldUntil.IsZero() {
				r.Spec.Hold.Until = &metav1.Time{Time: p.HoldUntil}
			}
		}
	}
	return r, true
}
