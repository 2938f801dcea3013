package backupschedule

import (
	"cmp"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/backup/schedule"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// Documents returns the schedule, unless it is not configured yet. It waits for a user while its backups fail.
func (f *Fold) Documents(k *kit.Kit) (out []kit.Document) {
	for _, b := range f.Items() {
		s := b.Status
		d := kit.Document{
			Kind: "backupschedule", Namespace: b.Namespace, Name: b.Name, ID: f.id, Phase: string(cmp.Or(s.Phase, v1alpha1.BackupScheduled)), Message: s.Message, Next: s.Next,
			Progress: fmt.Sprintf("%d kept", s.Kept), Began: "last success",
			Details:  func() ([]kit.DocumentField, kit.DocumentTable) { return details(b) },
			Commands: []string{k.Hint(b.Namespace, "describe", "backupschedule", b.Name) + " shows its backups and what happened"},
		}
		if s.LastSuccessfulTime != nil {
			d.Since = s.LastSuccessfulTime.Time
		}
		switch s.Phase {
		case v1alpha1.BackupFailing:
			d.State = kit.Waiting
		case v1alpha1.BackupEnded:
			d.End(&metav1.Time{Time: f.last})
		}
		out = append(out, d)
	}
	return out
}

// details returns the properties of a schedule, and its backups.
func details(b *v1alpha1.BackupSchedule) ([]kit.DocumentField, kit.DocumentTable) {
	fields := []kit.DocumentField{
		{Name: "Schedule", Value: when(b)}, {Name: "Destination", Value: destination(b)}, {Name: "Backups kept", Value: fmt.Sprint(b.Status.Kept)},
	}
	if next := b.Status.NextScheduleTime; next != nil {
		fields = append(fields, kit.DocumentField{Name: "Next backup", Value: cli.Second(next.Time)})
	}
	table := kit.DocumentTable{Title: "Backups", Header: []string{"Taken (UTC)", "Clusters", "Objects", "Bytes", "Location"}}
	for _, r := range b.Status.Backups {
		table.Rows = append(table.Rows, []string{cli.Second(r.TakenAt.Time), fmt.Sprint(r.Clusters), fmt.Sprint(r.Objects), fmt.Sprint(r.Bytes), r.Path})
	}
	return fields, table
}

// Err returns why an event cannot be read.
func (f *Fold) Err() (err error) {
	f.view.Read(f.id, func(e *aggregate.Entry[*schedule.State]) {
		if e != nil {
			err = e.Err
		}
	})
	return err
}

// Object returns the schedule.
func (f *Fold) Object() (name string, object any) {
	for _, b := range f.Items() {
		object = b
	}
	return "backupschedule", object
}

// Content returns the state of the schedule.
func (f *Fold) Content() (state any) {
	f.view.ReadState(f.id, func(s *schedule.State) { state = s })
	return state
}

// Describe returns the description of the schedule.
func (f *Fold) Describe(v kit.View) (lines []string) {
	for _, b := range f.Items() {
		lines = view{v}.describe(b)
	}
	return lines
}
