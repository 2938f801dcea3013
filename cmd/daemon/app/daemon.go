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
	"scute.dev/internal/fair"
	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/mover"
	moves "scute.dev/mover/runner"
	"scute.dev/mover/transfer"
	pauses "scute.dev/pause/runner"
	remediations "scute.dev/remediator/runner"
	"scute.dev/workflow/manifest"
	runs "scute.dev/workflow/runner"
)

type daemon struct {
	manager    manager.Manager
	moves      *moves.Runner
	runs       *runs.Runner
	pauses     *pauses.Runner
	schedules  *schedules.Runner
	env        *manifest.Env
	view       *views
	projector  *aggregate.Projector
	gate       *gate
	sealing    *sealing // nil if disabled
	report     *report
	logger     *slog.Logger
	checkOther func() error
	resources  *resourceCounter

	drivenMoves, drivenRuns, drivenPauses, drivenSchedules driven
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
	here := mover.Home{Cluster: cluster, Log: home.log.ID()}
	d := &daemon{logger: logger, checkOther: func() error { return nil }}
	var log aggregate.Log = home.log
	if o.WrapLog != nil {
		log = o.WrapLog(log)
	}
	written := &watermarkLog{Log: log, raiseWatermark: func(context.Context, uint64) error { return nil }, tenure: held, appends: newAppends()}
	reregister(written.appends.collectors()...)
	log = written
	d.moves = &moves.Runner{
		Log: log, Home: here, Incarnation: home.incarnation, Logger: logger, Slots: fair.NewSlots(o.MoveConcurrency),
		Performer: func(id string) moves.Performer {
			return &transfer.Transfer{
				ID: id, Source: source, Dial: transfer.Dialer(source, g, o.wrap(held)), Workers: o.MoveWorkers,
				Remediations: d.remediationLister(home.log.Head, o.Remediation), Shares: o.shares,
			}
		},
	}
	d.resources = &resourceCounter{}
	d.env = newEnv(o, acting, held, g, log, home.incarnation)
	d.view = newViews(usageLimits{Events: o.NamespaceEvents, Bytes: o.NamespaceBytes})
	d.view.setLog(home.log, here.Log)
	d.view.Moves.Home = here
	d.runs = newRunner(o, d.env, log, home.incarnation, logger)
	d.runs.Quota = func(namespace string) string { return d.view.Usage.Exceeded(namespace, time.Now()) }
	d.pauses = newPauses(source, log, home.incarnation, logger)
	d.schedules = newSchedules(o, source, log, home, logger)
	feed := remediation.NewEventSource(remediations.Actor(home.incarnation))
	moveChanged := d.drivenMoves.setSupervisor(d.moves.Supervisor(d.view.Moves))
	d.view.Moves.Changed = func(id string, seq uint64) {
		moveChanged(id, seq)
		d.enqueueAfterMove(feed, id)
	}
	d.view.Runs.Changed = d.drivenRuns.setSupervisor(d.runs.Supervisor(d.view.Runs))
	d.view.Pauses.Changed = d.drivenPauses.setSupervisor(d.pauses.Supervisor(d.view.Pauses))
	d.view.Schedules.Changed = d.drivenSchedules.setSupervisor(d.schedules.Supervisor(d.view.Schedules))
	d.view.Remediations.Changed = feed.Changed
	d.projector = aggregate.NewProjector(home.log, "daemon", d.view, logger)
	var lock *lease
	if o.LeaderElection {
		if lock, err = newLease(config, home, written.head, held); err != nil {
			return nil, err
		}
		written.raiseWatermark, d.checkOther = lock.raiseWatermark, func() error { return lock.checkOther(time.Now()) }
		if o.Log.URL != "" { // only this process can access an embedded log
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
		starter := newRemediator(d, o, acting, held, g, log, home.incarnation, feed, logger)
		starter.Register()
		if err := d.manager.Add(d.whenLeading(func(context.Context) error { return starter.SetupWithManager() })); err != nil {
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
	return d, errors.Join(
		d.registerMoves(home), d.registerRuns(), d.registerPauses(), d.registerSchedules(o.Backups, g),
		d.register(home, o.Version),
	)
}

func (d *daemon) register(home *home, version string) error {
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
		d.manager.AddHealthzCheck("ping", healthz.Ping),
		ready.register(d.manager, d.logger),
	)
}

func (d *daemon) base(k *driven) resource.Base {
	return resource.Base{
		Client: d.manager.GetClient(), Live: d.manager.GetAPIReader(), Recorder: d.manager.GetEventRecorder("scuted"),
		Quota: d.runs.Quota, Changes: &k.changes,
	}
}

// registerKind registers the controller and the supervisor of a kind. Both start when this process
// leads and the gate is open. Then the objects that the function open returns are enqueued.
func (d *daemon) registerKind(
	kind string, list client.ObjectList, k *driven,
	setup func(manager.Manager) error, run func(context.Context), open func(namespace, name string) []string,
) error {
	d.resources.add(d.manager.GetCache(), list)
	return d.manager.Add(d.whenLeading(func(ctx context.Context) error {
		if err := setup(d.manager); err != nil {
			return fmt.Errorf("preparing the %s controller: %w", kind, err)
		}
		k.enqueue(open)
		run(ctx)
		return nil
	}))
}

// serves reports whether the API server serves a kind of scute. If the API server does not, serves
// logs the consequence.
func (d *daemon) serves(kind, consequence string) (bool, error) {
	served, err := resource.Serves(d.manager.GetRESTMapper(), v1alpha1.GroupVersion().WithKind(kind))
	if err == nil && !served {
		d.logger.Warn(consequence, "because",
			"the API server has no kind "+kind+": install the CRDs of this version, and restart scuted")
	}
	return served, err
}

func (d *daemon) registerMoves(home *home) error {
	r := &move.Reconciler{
		Base: d.base(&d.drivenMoves),
		Moves: struct {
			*moves.Runner
			*moves.Moves
		}{d.moves, d.view.Moves},
		LogID: home.log.ID(),
	}
	k := &d.drivenMoves
	return d.registerKind("Move", &v1alpha1.MoveList{}, k, r.SetupWithManager, k.supervisor.Run, d.view.Moves.Open)
}

func (d *daemon) registerRuns() error {
	r := &workflow.Reconciler{
		Base: d.base(&d.drivenRuns),
		Runs: struct {
			*runs.Runner
			*runs.Runs
		}{d.runs, d.view.Runs},
		Definer: d.env,
	}
	k := &d.drivenRuns
	return d.registerKind("WorkflowRun", &v1alpha1.WorkflowRunList{}, k, r.SetupWithManager, k.supervisor.Run, d.runsOf)
}

// whenLeading returns a runnable that runs in the leader after the gate has opened.
func (d *daemon) whenLeading(run func(context.Context) error) manager.RunnableFunc {
	return func(ctx context.Context) error {
		select {
		case <-d.gate.open:
			return run(ctx)
		case <-ctx.Done():
			return nil
		}
	}
}

// runsOf returns the runs of a WorkflowRun that are open or have files on disk. If namespace and
// name are empty, it returns such runs of all WorkflowRuns.
func (d *daemon) runsOf(namespace, name string) []string {
	return append(d.runs.WithFiles(namespace, name), d.view.Runs.Open(namespace, name)...)
}

type always func(context.Context) error

func (f always) Start(ctx context.Context) error { return f(ctx) }
func (always) NeedLeaderElection() bool          { return false }
