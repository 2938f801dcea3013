package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	_ "golang.org/x/crypto/x509roots/fallback" // the image contains no CA certificates
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"scute.dev/aggregate"
	"scute.dev/api/v1alpha1"
	schedules "scute.dev/backup/runner"
	"scute.dev/controllers/move"
	"scute.dev/controllers/remediation"
	"scute.dev/controllers/resource"
	"scute.dev/controllers/workflow"
	"scute.dev/eventlog"
	"scute.dev/internal/projection"
	"scute.dev/internal/supervise"
	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/mover"
	moves "scute.dev/mover/runner"
	"scute.dev/mover/transfer"
	pauses "scute.dev/pause/runner"
	"scute.dev/projector"
	remediations "scute.dev/remediator/runner"
	"scute.dev/workflow/manifest"
	runs "scute.dev/workflow/runner"
)

// daemon contains everything that runs.
type daemon struct {
	manager   manager.Manager
	moves     *moves.Runner
	runs      *runs.Runner
	pauses    *pauses.Runner
	schedules *schedules.Runner
	env       *manifest.Env
	view      *projection.View
	projector *projector.Projector[*projection.View]
	gate      *gate
	sealing   *sealing // nil if disabled
	report    *report
	logger    *slog.Logger
	// checkOther returns an error if another installation is the leader here.
	checkOther func() error
	// resources counts the stored objects.
	resources *resourceCounter

	moveSupervisor, runSupervisor, pauseSupervisor, scheduleSupervisor *supervise.Supervisor
	// moveChanges, runChanges, pauseChanges and scheduleChanges notify the controllers.
	moveChanges, runChanges, pauseChanges, scheduleChanges resource.Changes[string]
}

func newDaemon(ctx context.Context, o Options, config *rest.Config, home *home, logger *slog.Logger) (*daemon, error) {
	var held *tenure
	acting := rest.CopyConfig(config) // for requests that change clusters
	if o.LeaderElection {
		held = &tenure{}
		acting.Wrap(held.fence)
	}
	source, err := kube.Connect("source", acting)
	if err != nil {
		return nil, err
	}
	g, err := guard.New(o.AllowAddresses)
	if err != nil {
		return nil, fmt.Errorf("--allow-addresses: %w", err)
	}
	cluster, err := source.NamespaceUID(ctx, metav1.NamespaceSystem)
	if err != nil {
		return nil, fmt.Errorf("reading the ID of the management cluster: %w", err)
	}
	driven := mover.Home{Cluster: cluster, Log: home.log.ID()}
	d := &daemon{logger: logger, checkOther: func() error { return nil }}
	var log aggregate.Log = home.log
	if o.WrapLog != nil {
		log = o.WrapLog(log)
	}
	written := &watermarkLog{Log: log, raiseWatermark: func(context.Context, uint64) error { return nil }, tenure: held, appends: newAppends()}
	reregister(written.appends.collectors()...)
	log = written
	d.moves = &moves.Runner{
		Log: log, Home: driven, Incarnation: home.incarnation, Logger: logger, Slots: supervise.NewSlots(o.MoveConcurrency),
		Performer: func(id string) moves.Performer {
			return &transfer.Transfer{
				ID: id, Source: source, Dial: transfer.Dialer(source, g, o.wrap(held)), Workers: o.MoveWorkers,
				Remediations: d.remediationLister(home.log.Head, o.Remediation), Shares: o.shares,
			}
		},
	}
	d.resources = &resourceCounter{}
	d.env = newEnv(o, acting, held, g, log, home.incarnation)
	d.view = projection.New(projection.Limits{Events: o.NamespaceEvents, Bytes: o.NamespaceBytes})
	d.runs = newRunner(o, d.env, log, home.incarnation, logger)
	d.pauses = newPauses(source, log, home.incarnation, logger)
	d.schedules = newSchedules(o, source, log, home, logger)
	d.runs.Changed, d.moves.Changed, d.pauses.Changed, d.schedules.Changed = d.runChanges.Add, d.moveChanges.Add, d.pauseChanges.Add, d.scheduleChanges.Add
	d.runs.Quota = func(namespace string) string { return d.view.Usage.Exceeded(namespace, time.Now()) }
	feed := remediation.NewEventSource(remediations.Actor(home.incarnation))
	d.moveSupervisor, d.runSupervisor = d.moves.Supervisor(d.view.Moves), d.runs.Supervisor(d.view.Runs)
	d.pauseSupervisor = d.pauses.Supervisor(d.view.Pauses)
	d.scheduleSupervisor = d.schedules.Supervisor(d.view.Schedules)
	d.view.Moves.Changed = func(id string) {
		d.moveSupervisor.Changed(id)
		d.moveChanges.Add(id)
		d.enqueueAfterMove(feed, id)
	}
	d.view.Runs.Changed = func(id string) {
		d.runSupervisor.Changed(id)
		d.runChanges.Add(id)
	}
	d.view.Pauses.Changed = func(id string) {
		d.pauseSupervisor.Changed(id)
		d.pauseChanges.Add(id)
	}
	d.view.Schedules.Changed = func(id string) {
		d.scheduleSupervisor.Changed(id)
		d.scheduleChanges.Add(id)
	}
	d.view.Remediations.Changed = feed.Changed
	d.view.Listeners = map[eventlog.Kind]func(string, uint64){
		eventlog.KindMove: d.moves.Notify, eventlog.KindRun: d.runs.Notify, eventlog.KindPause: d.pauses.Notify,
	}
	d.view.Moves.Home, d.view.Runs.LogID, d.view.Pauses.LogID, d.view.Remediations.LogID = driven, driven.Log, driven.Log, driven.Log
	d.view.Schedules.LogID = driven.Log
	d.view.Moves.Log, d.view.Runs.Log, d.view.Pauses.Log, d.view.Schedules.Log = home.log, home.log, home.log, home.log
	d.projector = projector.New(home.log, d.view, projector.Options{Name: "daemon", Logger: logger})
	var lock *lease
	if o.LeaderElection {
		if lock, err = newLease(config, home, written.head, held); err != nil {
			return nil, err
		}
		written.raiseWatermark, d.checkOther = lock.raiseWatermark, func() error { return lock.checkOther(time.Now()) }
		if o.Log.URL != "" { // only this process accesses an embedded log
			lock.health = home.log.Health
		}
	}
	if d.manager, err = newManager(o, config, acting, lock, logger); err != nil {
		return nil, err
	}
	if lock != nil {
		if err := d.manager.Add(always(func(ctx context.Context) error { return lock.monitorHealth(ctx, logger) })); err != nil {
			return nil, err
		}
	}
	d.runs.Adopted = adoptedRun(d.manager.GetClient())
	d.report = &report{client: d.manager.GetClient(), recorder: d.manager.GetEventRecorder("scuted"), remediation: o.Remediation}
	paged := rest.CopyConfig(config)
	guard.BoundPages(paged)
	reader, err := client.New(paged, client.Options{Scheme: d.manager.GetScheme(), Mapper: d.manager.GetRESTMapper()})
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the management cluster: %w", err)
	}
	d.gate = &gate{
		log: home.log, view: d.view.Trust, caughtUp: d.projector.CaughtUp(), watermarked: written, lease: lock, reader: d.manager.GetAPIReader(),
		statuses: newSurvey(reader, home.log.ID(), o.Remediation),
		report:   d.report, actor: "daemon/" + home.incarnation, logger: logger, open: make(chan struct{}),
	}
	if o.Remediation {
		if err := newRemediator(d, o, acting, held, g, log, home.incarnation, feed, logger).SetupWithManager(); err != nil {
			return nil, err
		}
	}
	if o.Audit.Key != "" {
		if d.sealing, err = newSealing(o, config, home, d.report, logger); err != nil {
			return nil, err
		}
		reregister(d.sealing)
		if err := d.manager.Add(manager.RunnableFunc(d.sealing.run)); err != nil {
			return nil, err
		}
	}
	if home.access != nil {
		if err := d.requireTokens(o.Log.Access, config, home); err != nil {
			return nil, err
		}
	}
	if o.Webhook.URL != "" {
		if err := d.deliver(o.Webhook, config, home); err != nil {
			return nil, err
		}
	}
	if o.Tracing.Position != "" {
		if err := d.trace(ctx, o.Tracing, config, home, cluster); err != nil {
			return nil, err
		}
	}
	return d, errors.Join(d.register(home, o.Version), d.registerSchedules(o.Backups, g))
}

func (d *daemon) register(home *home, version string) error {
	if err := d.registerControllers(home); err != nil {
		return err
	}
	d.resources.add(d.manager.GetCache(), &v1alpha1.MoveList{}, &v1alpha1.WorkflowRunList{})
	registerMetrics(d.view, home.log, d.resources, d.gate.currentFault, version)
	ready := &readiness{
		log: home.log, caughtUp: d.projector.CaughtUp(), position: d.projector.Position, now: time.Now,
		checkOther: d.checkOther,
	}
	return errors.Join(
		d.manager.Add(always(func(ctx context.Context) error {
			if err := d.projector.Run(ctx); ctx.Err() == nil {
				return fmt.Errorf("the event log cannot be trusted: %w", err)
			}
			return nil
		})),
		d.manager.Add(manager.RunnableFunc(d.gate.run)),
		d.manager.Add(always(func(ctx context.Context) error {
			return watchOthers(ctx, d.checkOther, storeCheckInterval, func(err error) {
				d.logger.Error("this installation does nothing", "error", err)
				d.report.event("AnotherInstallation", err.Error())
			})
		})),
		d.manager.Add(d.whenLeading(d.moveSupervisor.Run)),
		d.manager.Add(d.enqueueOpen(&d.moveChanges, d.view.Moves.Open)),
		d.manager.Add(d.whenLeading(d.runSupervisor.Run)),
		d.manager.Add(d.enqueueOpen(&d.runChanges, d.runsOf)),
		d.manager.AddHealthzCheck("ping", healthz.Ping),
		ready.register(d.manager, d.logger),
	)
}

// base returns the base of the reconciler that changes notify.
func (d *daemon) base(changes *resource.Changes[string]) resource.Base {
	return resource.Base{
		Client: d.manager.GetClient(), Live: d.manager.GetAPIReader(), Recorder: d.manager.GetEventRecorder("scuted"),
		Quota: d.runs.Quota, CaughtUp: d.gate.open, Changes: changes,
	}
}

func (d *daemon) registerControllers(home *home) error {
	ofMoves := &move.Reconciler{
		Base: d.base(&d.moveChanges),
		Moves: struct {
			*moves.Runner
			*moves.Moves
		}{d.moves, d.view.Moves},
		LogID: home.log.ID(),
	}
	if err := ofMoves.SetupWithManager(d.manager); err != nil {
		return fmt.Errorf("preparing the Move controller: %w", err)
	}
	ofRuns := &workflow.Reconciler{
		Base: d.base(&d.runChanges),
		Runs: struct {
			*runs.Runner
			*runs.Runs
		}{d.runs, d.view.Runs},
		Definer: d.env,
	}
	if err := ofRuns.SetupWithManager(d.manager); err != nil {
		return fmt.Errorf("preparing the WorkflowRun controller: %w", err)
	}
	return d.registerPauses()
}

// whenLeading returns a runnable that only the leader runs, when the gate has opened.
func (d *daemon) whenLeading(run func(context.Context)) manager.RunnableFunc {
	return func(ctx context.Context) error {
		select {
		case <-d.gate.open:
			run(ctx)
		case <-ctx.Done():
		}
		return nil
	}
}

// enqueueOpen returns a runnable that enqueues each open object once, to check that its resource exists: removing a finalizer by hand triggers no reconcile.
func (d *daemon) enqueueOpen(changed *resource.Changes[string], open func(namespace, name string) []string) manager.RunnableFunc {
	return d.whenLeading(func(context.Context) {
		for _, id := range open("", "") {
			changed.Add(id)
		}
	})
}

// runsOf returns the runs that WorkflowRuns of a name requested, and that are open or have files on disk. If both arguments are empty, it returns
// those of all WorkflowRuns.
func (d *daemon) runsOf(namespace, name string) []string {
	left, err := d.runs.WithFiles(namespace, name)
	if err != nil {
		d.logger.Error("looking for files of runs", "error", err)
	}
	return append(left, d.view.Runs.Open(namespace, name)...)
}

// always is a runnable that does not wait for leadership.
type always func(context.Context) error

func (f always) Start(ctx context.Context) error { return f(ctx) }
func (always) NeedLeaderElection() bool          { return false }
