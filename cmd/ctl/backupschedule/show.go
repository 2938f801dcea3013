package backupschedule

import (
	"cmp"
	"fmt"
	"path"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// view shows schedules.
type view struct{ kit.View }

func (v view) phase(b *v1alpha1.BackupSchedule) string {
	as, phase := cli.Green, cmp.Or(b.Status.Phase, v1alpha1.BackupScheduled)
	if b.Status.Phase == "" && b.Status.Message != "" { // its spec is refused, so no backups are created
		phase = v1alpha1.BackupFailing
	}
	switch phase {
	case v1alpha1.BackupFailing:
		as = cli.Red
	case v1alpha1.BackupRunning, v1alpha1.BackupSuspended:
		as = cli.Cyan
	}
	return v.Paint.Text(as, string(phase))
}

// describe returns the description of a schedule without its timeline.
func (v view) describe(b *v1alpha1.BackupSchedule) []string {
	out := append(v.Head("Schedule", b.Namespace, b.Name, "backup", b.Status.ScheduleID), v.Field("When", when(b)))
	out = append(out, v.Field("To", cli.Clean(destination(b))), "")
	return append(out, v.statusLines(b)...)
}

func when(b *v1alpha1.BackupSchedule) string {
	return cli.Clean(b.Spec.Schedule + " in " + cmp.Or(b.Spec.TimeZone, "Etc/UTC"))
}

// destination returns where the backups are stored.
func destination(b *v1alpha1.BackupSchedule) string {
	if s3 := b.Spec.Destination.S3; s3 != nil {
		return "s3://" + path.Join(s3.Bucket, s3.Prefix) + " at " + s3.Endpoint
	}
	return "the volume of scuted"
}

// statusLines returns the state of a schedule: the part of a description that changes.
func (v view) statusLines(b *v1alpha1.BackupSchedule) []string {
	s := b.Status
	out := []string{v.Field("Phase", v.phase(b)), v.Field("Last success", v.since(s.LastSuccessfulTime))}
	if s.NextScheduleTime != nil {
		out = append(out, v.Field("Next", cli.Second(s.NextScheduleTime.Time)))
	}
	out = append(out, v.Untrusted(s.Conditions)...)
	out = append(out, v.Outlook(false, s.Phase == "", s.Message, s.Next)...)
	t := &cli.Table{Header: []string{"TAKEN", "CLUSTERS", "OBJECTS", "BYTES", "PATH"}}
	for _, r := range s.Backups {
		t.Add(cli.Second(r.TakenAt.Time), fmt.Sprint(r.Clusters), fmt.Sprint(r.Objects), fmt.Sprint(r.Bytes), cli.Clean(r.Path))
	}
	return append(out, v.Section("Backups", t)...)
}

func (v view) since(t *metav1.Time) string {
	if t == nil {
		return "never"
	}
	return v.Age(t) + " ago (" + cli.Second(t.Time) + ")"
}

// row returns a schedule as a row of a table; the message is wide.
func row(of kit.View, b *v1alpha1.BackupSchedule) kit.Row {
	v, last := view{of}, "never"
	if b.Status.LastSuccessfulTime != nil {
		last = v.Age(b.Status.LastSuccessfulTime)
	}
	return kit.Row{
		Cells: []string{cli.Clean(b.Name), cli.Clean(b.Spec.Schedule), v.phase(b), last, fmt.Sprint(b.Status.Kept), v.Age(&b.CreationTimestamp)},
		Wide:  []string{cli.Clean(b.Status.Message)},
	}
}
