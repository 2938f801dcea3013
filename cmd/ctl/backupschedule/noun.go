package backupschedule

import (
	"cmp"
	"context"
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

type (
	session = kit.Session[*v1alpha1.BackupSchedule]
	noun    = kit.Noun[*v1alpha1.BackupSchedule]
)

// Commands returns the commands about BackupSchedules by verb.
func Commands(env *cli.Env) kit.Verbs {
	n := newNoun()
	return kit.Verbs{"get": kit.Get(env, n), "describe": kit.Describe(env, n), "logs": kit.Logs(env, n)}
}

func newNoun() *noun {
	return kit.Resource(&noun{
		Name: "backupschedule", Plural: "backupschedules", WithArticle: "a backup schedule", Kind: eventlog.KindBackup,
		New:     func() client.Object { return &v1alpha1.BackupSchedule{} },
		NewList: func() client.ObjectList { return &v1alpha1.BackupScheduleList{} },
		NewFold: func(_ *connect.Log, id string) kit.Fold[*v1alpha1.BackupSchedule] { return NewFold(id) },
		Header:  kit.Row{Cells: []string{"NAME", "SCHEDULE", "PHASE", "LAST SUCCESS", "KEPT", "AGE"}, Wide: []string{"MESSAGE"}},
		Row:     row,
		Describe: func(_ context.Context, p *session, b *v1alpha1.BackupSchedule) ([]string, error) {
			return view{p.View()}.describe(b), nil
		},
		StatusLines: func(v kit.View, b *v1alpha1.BackupSchedule) []string { return view{v}.statusLines(b) },
		Updates: func(b *v1alpha1.BackupSchedule) []kit.Update {
			return []kit.Update{{Text: kit.StatusLine(string(cmp.Or(b.Status.Phase, "Pending")), b.Status.Message, "", b.Status.Next)}}
		},
		HasFailed:  func(*v1alpha1.BackupSchedule) bool { return false },
		IsFinished: func(b *v1alpha1.BackupSchedule) bool { return b.Status.Phase == v1alpha1.BackupEnded },
	}, "BackupSchedule", func(b *v1alpha1.BackupSchedule) (phase, id string, conditions []metav1.Condition) {
		return string(b.Status.Phase), b.Status.ScheduleID, b.Status.Conditions
	})
}

// Fold is a schedule as the log records it.
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

// Items returns the schedule, unless it is not configured yet. Its next time is relative to the last commit.
func (f *Fold) Items() (items []*v1alpha1.BackupSchedule) {
	status, known := f.view.Status(f.id)
	f.view.ReadState(f.id, func(s *schedule.State) {
		if known {
			items = append(items, fromLog(&s.Spec, status))
		}
	})
	return items
}

// fromLog returns the BackupSchedule from which a spec in the log was created, with its status.
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
