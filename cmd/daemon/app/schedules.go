package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"
	_ "time/tzdata" // schedules name time zones, and a container contains no time zone database

	"github.com/spf13/pflag"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	"scute.dev/backup/controller"
	schedules "scute.dev/backup/runner"
	"scute.dev/backup/schedule"
	stores "scute.dev/backup/store"
	"scute.dev/internal/fair"
	"scute.dev/kube"
	"scute.dev/kube/guard"
)

type backupOptions struct {
	// Volume is the folder with the destinations of kind volume. If it is empty, these destinations
	// are unavailable.
	Volume      string
	Concurrency int
	// MaxBytes limits the temporary files of one backup.
	MaxBytes int64
}

func (o *backupOptions) addFlags(f *pflag.FlagSet) {
	f.StringVar(&o.Volume, "cluster-backup-volume", o.Volume, "folder for backups of BackupSchedules whose destination is the volume, with a subfolder for each namespace; if empty, this destination is not available")
	f.IntVar(&o.Concurrency, "cluster-backup-concurrency", o.Concurrency, "backups of clusters that are created at once. A namespace without one may always start one, up to twice this number in total")
	f.Int64Var(&o.MaxBytes, "cluster-backup-max-bytes", o.MaxBytes, "bytes that one backup of clusters may use in the folder for temporary files while it is created")
}

func (o *backupOptions) validate() error {
	if o.MaxBytes < 1<<20 {
		return fmt.Errorf("--cluster-backup-max-bytes is %d: it must be 1048576 (1 MiB) or more", o.MaxBytes)
	}
	return nil
}

func newSchedules(o Options, source *kube.Cluster, log aggregate.Log, home *home, logger *slog.Logger) *schedules.Runner {
	return &schedules.Runner{
		Log: log, Incarnation: home.incarnation, Program: "scuted", Cluster: source, Select: finder{source}.Clusters, Logger: logger,
		Slots: fair.NewSlots(o.Backups.Concurrency), MaxBytes: o.Backups.MaxBytes, Shares: o.shares, Dir: filepath.Join(os.TempDir(), "scuted-backups-"+home.log.ID()),
	}
}

func (d *daemon) registerSchedules(o backupOptions, g *guard.Guard) error {
	if served, err := d.serves("BackupSchedule", "nothing is backed up"); err != nil || !served {
		return err
	}
	d.schedules.Destination = destinations{d.manager.GetAPIReader(), o.Volume, g}.open
	r := &controller.Reconciler{
		Base: d.base(&d.drivenSchedules),
		Schedules: struct {
			*schedules.Runner
			*schedules.Schedules
		}{d.schedules, d.view.Schedules},
	}
	run := func(ctx context.Context) {
		if err := d.recreateWorkDir(); err != nil {
			d.logger.Error("clusters are not backed up", "error", err)
			return
		}
		d.drivenSchedules.supervisor.Run(ctx)
	}
	k, list := &d.drivenSchedules, &v1alpha1.BackupScheduleList{}
	return d.registerKind("BackupSchedule", list, k, r.SetupWithManager, run, d.view.Schedules.Open)
}

// recreateWorkDir empties the folder for temporary files, because a process that was killed may
// have left files there.
func (d *daemon) recreateWorkDir() error {
	if err := os.RemoveAll(d.schedules.Dir); err != nil {
		return err
	}
	return os.MkdirAll(d.schedules.Dir, 0o700)
}

type destinations struct {
	reader client.Reader
	volume string
	guard  *guard.Guard
}

const storeDialTimeout = 30 * time.Second

// Keys of a Secret with S3 credentials, and the field that names it.
const (
	keyAccess, keySecret, keyToken, keyCA = "accessKeyID", "secretAccessKey", "sessionToken", "ca.crt"

	credentialsField = "spec.destination.s3.credentialsSecretRef"
)

func (d destinations) open(ctx context.Context, spec *schedule.Spec) (schedules.Store, error) {
	to := spec.Destination
	if to.Bucket == "" {
		if d.volume == "" {
			return nil, schedules.NewError(schedule.Problem{
				Reason: "NoVolume", Field: "spec.destination.volume", Message: "scuted has no volume for backups",
				Next: "ask the operator of scute to set clusterBackups.existingClaim of the chart (--cluster-backup-volume), or use s3",
			})
		}
		folder, err := stores.OpenFolder(d.volume)
		if err != nil {
			return nil, schedules.NewError(schedule.Problem{Reason: "NoVolume", Field: "spec.destination.volume", Message: "the volume of scuted cannot be used: " + err.Error(), Next: "check the backup volume of scuted"})
		}
		return folder, nil
	}
	var secret corev1.Secret
	if err := d.reader.Get(ctx, client.ObjectKey{Namespace: spec.Namespace, Name: to.Secret}, &secret); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, schedules.NewError(schedule.Problem{
				Reason: "InvalidCredentials", Field: credentialsField, Message: "there is no Secret " + to.Secret + " in the namespace",
				Next: "create it, with the keys " + keyAccess + " and " + keySecret,
			})
		}
		return nil, fmt.Errorf("reading the credentials: %w", err)
	}
	for _, key := range []string{keyAccess, keySecret} {
		if len(secret.Data[key]) == 0 {
			return nil, schedules.NewError(schedule.Problem{Reason: "InvalidCredentials", Field: credentialsField, Message: "Secret " + to.Secret + " has no key " + key, Next: "add it"})
		}
	}
	bucket, err := stores.OpenS3(stores.S3Options{
		Endpoint: to.Endpoint, Bucket: to.Bucket, Region: to.Region, Insecure: to.Insecure, Dial: d.guard.Dialer(storeDialTimeout).DialContext,
		AccessKeyID: string(secret.Data[keyAccess]), SecretAccessKey: string(secret.Data[keySecret]), SessionToken: string(secret.Data[keyToken]), CA: secret.Data[keyCA],
	})
	if err != nil {
		return nil, err
	}
	return bucket, nil
}
