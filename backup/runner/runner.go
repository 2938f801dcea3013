package runner

import (
	"context"
	"log/slog"
	"time"

	"scute.dev/aggregate"
	"scute.dev/backup/schedule"
	"scute.dev/backup/store"
	"scute.dev/eventlog"
	"scute.dev/internal/fair"
	"scute.dev/internal/redact"
	"scute.dev/internal/supervise"
	"scute.dev/kube"
)

// Store is a destination. The caller closes it.
type Store interface {
	store.Store
	Close() error
}

// Runner drives schedules. Set its fields before use.
type Runner struct {
	Log aggregate.Log
	// Incarnation identifies this process and changes at a restart.
	Incarnation string
	// Program makes the backups; it includes the version.
	Program string
	// Cluster is the management cluster. Select returns the Clusters that a label selector selects.
	Cluster *kube.Cluster
	Select  func(ctx context.Context, namespace, selector string) ([]string, error)
	// Shares reports whether backups of a namespace contain Secrets of other namespaces that
	// cluster-scoped identities own; nil means always.
	Shares      func(namespace string) bool
	Destination func(ctx context.Context, spec *schedule.Spec) (Store, error)
	// Dir is a local folder for backups that are being made. Files of an earlier process are
	// deleted there.
	Dir string
	// MaxBytes limits the size of a backup in Dir; 0 means no limit.
	MaxBytes int64
	// Slots limits the backups that are made concurrently; nil means no limit.
	Slots  *fair.Slots
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time

	supervise.Drivers

	histories histories
	volume    guardedVolume // the daemon's volume
}

// Supervisor returns a supervisor that drives the schedules of a view when they are due. The caller
// notifies it of changes in the view.
func (r *Runner) Supervisor(v *Schedules) *supervise.Supervisor {
	return &supervise.Supervisor{
		Noun: "backupschedule", IDs: v.IDs, Due: v.Due, Drive: r.Drive, Drivers: &r.Drivers, Logger: r.Logger,
	}
}

func (r *Runner) root(id, actor string) *root {
	return &root{
		Log: r.Log, Catalog: schedule.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindBackup, ID: id}, Actor: actor, Now: r.Now,
		Links: schedule.Links, State: new(schedule.State),
	}
}

// Configure records the spec of a schedule and a request for a backup, unless the log has them.
func (r *Runner) Configure(ctx context.Context, id, actor string, spec schedule.Spec, asked string) error {
	return r.update(ctx, id, actor, func(s *schedule.State) (events []schedule.Event) {
		if s.Spec.Generation != spec.Generation {
			events = append(events, schedule.Configured{Spec: spec})
		}
		if asked != "" && s.LastRequest != asked {
			events = append(events, schedule.Requested{Value: asked})
		}
		return events
	})
}

// End records that the resource of a schedule was deleted. It does nothing if the log already
// contains that, or does not contain the schedule.
func (r *Runner) End(ctx context.Context, id, actor, reason string) error {
	defer r.histories.acquire(id) // the schedule is not driven again
	return r.update(ctx, id, actor, func(s *schedule.State) []schedule.Event {
		if !s.IsConfigured() {
			return nil
		}
		return []schedule.Event{schedule.Ended{Reason: reason}}
	})
}

// update appends the events that decide returns for the state of a schedule. If another process has
// appended first, it calls decide again.
func (r *Runner) update(ctx context.Context, id, actor string, decide func(*schedule.State) []schedule.Event) error {
	root := r.root(id, actor)
	if err := r.histories.read(ctx, root); err != nil {
		return err
	}
	return root.Decide(ctx, root.Read, func(s *schedule.State) ([]schedule.Event, error) {
		if s.Finished() {
			return nil, nil
		}
		return decide(s), nil
	})
}

// Drive performs the steps of a schedule until none is due. It returns aggregate.ErrClaimLost if
// another process claims the schedule.
func (r *Runner) Drive(ctx context.Context, id string) error {
	d := &drive{root: r.histories.acquire(id), runner: r}
	if d.root == nil {
		d.root = r.root(id, "daemon/"+r.Incarnation)
	}
	if err := r.histories.read(ctx, d.root); err != nil {
		return err
	}
	if err := d.run(ctx, id); err != nil {
		return err
	}
	r.histories.release(d.root)
	return nil
}

func (d *drive) run(ctx context.Context, id string) error {
	r := d.runner
	if schedule.NextStep(d.State, d.Time()).Action == schedule.Idle {
		return nil
	}
	slot := r.Slots.Slot(d.State.Spec.Namespace)
	const reason = "the limit of concurrent backups is reached (--cluster-backup-concurrency)"
	if _, err := r.Acquire(ctx, id, slot, reason); err != nil {
		return err
	}
	defer slot.Release()
	if err := d.claim(ctx); err != nil {
		return err
	}
	for {
		step := schedule.NextStep(d.State, d.Time())
		if step.Action == schedule.Idle {
			return nil
		}
		if err := d.step(ctx, step); err != nil {
			return err
		}
	}
}

type drive struct {
	*root
	runner *Runner
}

func (d *drive) claim(ctx context.Context) error {
	return d.Decide(ctx, d.Read, func(s *schedule.State) ([]schedule.Event, error) {
		if s.Holder == d.runner.Incarnation {
			return nil, nil
		}
		return []schedule.Event{schedule.Claimed{Holder: d.runner.Incarnation}}, nil
	})
}

// record appends an event even if the spec has changed meanwhile.
func (d *drive) record(ctx context.Context, e schedule.Event) error {
	return d.Decide(ctx, d.refresh, func(*schedule.State) ([]schedule.Event, error) { return []schedule.Event{e}, nil })
}

func (d *drive) refresh(ctx context.Context) error { return d.Refresh(ctx, d.runner.Incarnation) }

func (d *drive) step(ctx context.Context, step schedule.Step) error {
	spec := d.State.Spec
	bounded, cancel := context.WithTimeout(ctx, time.Duration(spec.Timeout))
	defer cancel()
	switch step.Action {
	case schedule.Begin:
		return d.begin(ctx, bounded, step)
	case schedule.Resume:
		return d.resume(ctx, bounded)
	case schedule.Remove:
		return d.remove(ctx, bounded)
	default:
		return nil
	}
}

// fail logs an error and returns its problem, both without secrets.
func (d *drive) fail(what string, err error) schedule.Problem {
	p := ProblemOf(err)
	p.Message = redact.Message(p.Message)
	d.runner.Logger.Warn(what, "backupschedule", d.Name.ID, "error", redact.Message(err.Error()))
	return p
}
