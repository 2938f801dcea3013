package backup

import (
	"cmp"
	"context"
	"fmt"
	"path"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/backup/runner"
	"scute.dev/backup/schedule"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

func newNoun() *kit.Noun[*v1alpha1.BackupSchedule] {
	return kit.Resource(&kit.Noun[*v1alpha1.BackupSchedule]{
		Name: "backupschedule", Plural: "backupschedules", WithArticle: "a backup schedule", Kind: eventlog.KindBackup,
		New:     func() client.Object { return &v1alpha1.BackupSchedule{} },
		NewList: func() client.ObjectList { return &v1alpha1.BackupScheduleList{} },
		NewFold: func(_ *connect.Log, id string) kit.Fold[*v1alpha1.BackupSchedule] { return NewFold(id) },
		Header:  kit.Row{Cells: []string{"NAME", "SCHEDULE", "PHASE", "LAST SUCCESS", "KEPT", "AGE"}, Wide: []string{"MESSAGE"}},
		Row:     row,
		Describe: func(_ context.Context, p *kit.Session[*v1alpha1.BackupSchedule], b *v1alpha1.BackupSchedule) ([]string, error) {
			return describe(p.View(), b), nil
		},
		StatusLines: statusLines,
		Updates: func(b *v1alpha1.BackupSchedule) []kit.Update {
			return []kit.Update{{Text: kit.StatusLine(string(cmp.Or(b.Status.Phase, "Pending")), b.Status.Message, "", b.Status.Next)}}
		},
		HasFailed:  func(*v1alpha1.BackupSchedule) bool { return false },
		IsFinished: func(b *v1alpha1.BackupSchedule) bool { return b.Status.Phase == v1alpha1.BackupEnded },
	}, "BackupSchedule", func(b *v1alpha1.BackupSchedule) kit.Status {
		return kit.Status{Phase: string(b.Status.Phase), ID: b.Status.ScheduleID, Conditions: b.Status.Conditions}
	})
}

func phase(v kit.View, b *v1alpha1.BackupSchedule) string {
	if b.Status.Phase == "" && b.Status.Message != "" { // the spec is rejected, so no backups are created
		return v.Word(string(v1alpha1.BackupFailing))
	}
	return v.Word(string(cmp.Or(b.Status.Phase, v1alpha1.BackupScheduled)))
}

func row(v kit.View, b *v1alpha1.BackupSchedule) kit.Row {
	last := "never"
	if b.Status.LastSuccessfulTime != nil {
		last = v.Age(b.Status.LastSuccessfulTime)
	}
	return kit.Row{
		Cells: []string{cli.Clean(b.Name), cli.Clean(b.Spec.Schedule), phase(v, b), last, fmt.Sprint(b.Status.Kept), v.Age(&b.CreationTimestamp)},
		Wide:  []string{cli.Clean(b.Status.Message)},
	}
}

// describe returns the description without the timeline.
func describe(v kit.View, b *v1alpha1.BackupSchedule) []string {
	out := append(v.Head("Schedule", b.Namespace, b.Name, "backup", b.Status.ScheduleID), v.Field("When", when(b)))
	return append(append(out, v.Field("To", cli.Clean(destination(b))), ""), statusLines(v, b)...)
}

// statusLines returns those lines of a description that change over time.
func statusLines(v kit.View, b *v1alpha1.BackupSchedule) []string {
	s, last := b.Status, "never"
	if s.LastSuccessfulTime != nil {
		last = v.At(s.LastSuccessfulTime)
	}
	out := []string{v.Field("Phase", phase(v, b)), v.Field("Last success", last)}
	if s.NextScheduleTime != nil {
		out = append(out, v.Field("Next", cli.Second(s.NextScheduleTime.Time)))
	}
	out = append(out, v.Untrusted(s.Conditions)...)
	out = append(out, v.Outlook(false, s.Phase == "", s.Message, s.Next)...)
	return append(out, v.Tables([]kit.Table{backups(b)})...)
}

func when(b *v1alpha1.BackupSchedule) string {
	return cli.Clean(b.Spec.Schedule + " in " + cmp.Or(b.Spec.TimeZone, "Etc/UTC"))
}

func destination(b *v1alpha1.BackupSchedule) string {
	if s3 := b.Spec.Destination.S3; s3 != nil {
		return "s3://" + path.Join(s3.Bucket, s3.Prefix) + " at " + s3.Endpoint
	}
	return "the volume of scuted"
}

func backups(b *v1alpha1.BackupSchedule) kit.Table {
	t := kit.Table{Title: "Backups", Header: []string{"Taken", "Clusters", "Objects", "Bytes", "Path"}}
	for _, r := range b.Status.Backups {
		t.Rows = append(t.Rows, []string{cli.Second(r.TakenAt.Time), fmt.Sprint(r.Clusters), fmt.Sprint(r.Objects), fmt.Sprint(r.Bytes), r.Path})
	}
	return t
}

// Fold is the state of a schedule, computed from its commits.
type Fold struct {
	id   string
	view *runner.Schedules
	last time.Time
}

// NewFold returns a Fold without commits.
func NewFold(id string) *Fold {
	f := &Fold{id: id, view: runner.NewSchedules()}
	f.view.Now = func() time.Time { return f.last }
	return f
}

// Apply applies a commit.
func (f *Fold) Apply(r eventlog.Record) error {
	f.last = r.Stored
	_ = f.view.Apply(r) // the status reports an unreadable event
	return nil
}

// Err returns why an event cannot be read.
func (f *Fold) Err() error { return f.view.Err(f.id) }

// Items returns the schedule, if it is configured. The time of its next backup is computed as of
// the last commit.
func (f *Fold) Items() (items []*v1alpha1.BackupSchedule) {
	status, known := f.view.Status(f.id)
	f.view.ReadState(f.id, func(s *schedule.State) {
		if known {
			items = append(items, fromLog(&s.Spec, status))
		}
	})
	return items
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
		lines = describe(v, b)
	}
	return lines
}

// Documents returns the schedule as a document, if it is configured. While backups fail, its state
// is Waiting.
func (f *Fold) Documents(k *kit.Kit) (out []kit.Document) {
	for _, b := range f.Items() {
		s := b.Status
		d := kit.Document{
			Kind: "backupschedule", Namespace: b.Namespace, Name: b.Name, ID: f.id, Phase: string(cmp.Or(s.Phase, v1alpha1.BackupScheduled)),
			Message: s.Message, Next: s.Next, Progress: fmt.Sprintf("%d kept", s.Kept), Began: "last success",
			Details:  func() kit.Details { return details(b) },
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

func details(b *v1alpha1.BackupSchedule) kit.Details {
	fields := []kit.Field{{Name: "Schedule", Value: when(b)}, {Name: "Destination", Value: destination(b)}, {Name: "Backups kept", Value: fmt.Sprint(b.Status.Kept)}}
	if next := b.Status.NextScheduleTime; next != nil {
		fields = append(fields, kit.Field{Name: "Next backup", Value: cli.Second(next.Time)})
	}
	return kit.Details{Fields: fields, Tables: []kit.Table{backups(b)}}
}

// fromLog rebuilds a BackupSchedule from its spec in the log.
func fromLog(s *schedule.Spec, status v1alpha1.BackupScheduleStatus) *v1alpha1.BackupSchedule {
	b := &v1alpha1.BackupSchedule{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "BackupSchedule"},
		ObjectMeta: metav1.ObjectMeta{Namespace: s.Namespace, Name: s.Name, UID: types.UID(s.UID), Generation: s.Generation},
		Spec: v1alpha1.BackupScheduleSpec{
			Schedule: s.Schedule, TimeZone: s.TimeZone, Suspend: s.Suspend, StartingDeadline: kit.Duration(s.StartingDeadline), Timeout: kit.Duration(s.Timeout),
			Clusters:   v1alpha1.BackupSelection{Names: s.Clusters, All: s.All, Selector: kit.Selector(s.BySelector, s.Selector)},
			Encryption: v1alpha1.BackupEncryption{Recipients: s.Recipients, Plaintext: len(s.Recipients) == 0},
		},
		Status: status,
	}
	if s.KeepLast > 0 {
		n := int32(s.KeepLast) //nolint:gosec // the schema limits it
		b.Spec.Retention.KeepLast = &n
	}
	if s.KeepFor > 0 {
		b.Spec.Retention.KeepFor = kit.Duration(s.KeepFor)
	}
	to := s.Destination
	if to.Bucket == "" {
		b.Spec.Destination.Volume = &v1alpha1.BackupVolume{Folder: to.Folder}
		return b
	}
	b.Spec.Destination.S3 = &v1alpha1.BackupS3{
		Endpoint: to.Endpoint, Bucket: to.Bucket, Prefix: to.Prefix, Region: to.Region, Insecure: to.Insecure,
		CredentialsSecretRef: v1alpha1.BackupSecretRef{Name: to.Secret},
	}
	return b
}
