package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/move"
	"scute.dev/eventlog"
	"scute.dev/kube"
	"scute.dev/mover/runner"
	"scute.dev/mover/transfer"
	"scute.dev/projector"
)

// stopGrace is how long a stop waits for the steps under way.
const stopGrace = 20 * time.Second

// Run runs the daemon until ctx ends. Everything that was begun goes on when a daemon runs again.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	handler := o.handler()
	logger := slog.New(handler)
	ctrllog.SetLogger(logr.FromSlogHandler(handler))
	klog.SetSlogLogger(logger) // client-go's own lines, in the same format

	config, err := o.config()
	if err != nil {
		return err
	}
	home, err := openLog(ctx, o.Log, logger)
	if err != nil {
		return fmt.Errorf("opening the event log: %w", err)
	}
	defer func() {
		if err := home.log.Close(); err != nil {
			logger.Error("closing the event log", "error", err)
		}
	}()
	d, err := newDaemon(o, config, home, logger)
	if err != nil {
		return err
	}
	logger.Info("scuted starts", "incarnation", d.runner.Incarnation, "log", home.where)
	err = d.manager.Start(ctx)
	logger.Info("scuted stops", "error", err)
	if err != nil && ctx.Err() == nil {
		return fmt.Errorf("running: %w", err)
	}
	return nil
}

func (o *Options) config() (*rest.Config, error) {
	config := o.Config
	if config == nil {
		var err error
		if config, err = ctrl.GetConfig(); err != nil {
			return nil, fmt.Errorf("finding the management cluster: %w: run in a pod, or set KUBECONFIG or --kubeconfig", err)
		}
	}
	config = rest.CopyConfig(config)
	if o.WrapTransport != nil {
		config.Wrap(o.WrapTransport)
	}
	return config, nil
}

// daemon is everything that runs.
type daemon struct {
	manager   manager.Manager
	runner    *runner.Runner
	moves     *runner.Moves
	projector *projector.Projector[*runner.Moves]
	wake      chan struct{}
	queue     chan move.Queue // filled once, when the controller starts
}

func newDaemon(o Options, config *rest.Config, home *home, logger *slog.Logger) (*daemon, error) {
	source, err := kube.Connect("source", config)
	if err != nil {
		return nil, err
	}
	d := &daemon{wake: make(chan struct{}, 1), queue: make(chan move.Queue, 1)}
	var log runner.Log = home.log
	if o.WrapLog != nil {
		log = o.WrapLog(log)
	}
	d.runner = &runner.Runner{
		Log: log, Incarnation: home.incarnation, Logger: logger,
		Performer: func(id string) runner.Performer {
			return &transfer.Transfer{ID: id, Source: source, Dial: transfer.Dialer(source, o.WrapTransport), Workers: o.MoveWorkers}
		},
	}
	d.moves = runner.NewMoves(d.changed)
	d.projector = projector.New(home.log, func() *runner.Moves { return d.moves }, projector.Options{Name: "moves", Version: 1, Logger: logger})
	if d.manager, err = newManager(o, config, home, logger); err != nil {
		return nil, err
	}
	return d, d.register(o, home)
}

func newManager(o Options, config *rest.Config, home *home, logger *slog.Logger) (manager.Manager, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	grace := stopGrace
	options := ctrl.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(logger.Handler()),
		Metrics:                server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress: o.HealthAddress,
		// Secrets, Clusters and the like are never cached: the daemon keeps a watch on its own resources alone.
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		GracefulShutdownTimeout: &grace,
	}
	if o.LeaderElection {
		lock, err := newLease(config, o.LeaderElectionNamespace, home.holder)
		if err != nil {
			return nil, err
		}
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock
		options.LeaderElectionReleaseOnCancel = true
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("preparing the controllers: %w", err)
	}
	return mgr, nil
}

func (d *daemon) register(o Options, home *home) error {
	reconciler := &move.Reconciler{
		Client: d.manager.GetClient(), Recorder: d.manager.GetEventRecorder("scuted"),
		Moves: struct {
			*runner.Runner
			*runner.Moves
		}{d.runner, d.moves},
		CaughtUp: d.projector.CaughtUp(),
		Started:  func(q move.Queue) { d.queue <- q },
	}
	if err := reconciler.SetupWithManager(d.manager); err != nil {
		return fmt.Errorf("preparing the Move controller: %w", err)
	}
	registerMetrics(d.moves, home.log)
	supervisor := &runner.Supervisor{Runner: d.runner, Moves: d.moves, Wake: d.wake, Limit: o.MoveConcurrency}
	return errors.Join(
		d.manager.Add(always(func(ctx context.Context) error {
			if err := d.projector.Run(ctx); ctx.Err() == nil {
				return fmt.Errorf("the event log cannot be trusted: %w", err)
			}
			return nil
		})),
		d.manager.Add(manager.RunnableFunc(func(ctx context.Context) error { // only the leader
			select {
			case <-d.projector.CaughtUp():
				supervisor.Run(ctx)
			case <-ctx.Done():
			}
			return nil
		})),
		d.manager.AddHealthzCheck("ping", healthz.Ping),
		d.manager.AddReadyzCheck("log", func(r *http.Request) error { return ready(r.Context(), d.projector.CaughtUp(), home.log) }),
	)
}

// changed is told by the view, and tells the supervisor and the controller. It does not block.
func (d *daemon) changed(id string) {
	select {
	case d.wake <- struct{}{}:
	default:
	}
	select {
	case q := <-d.queue:
		q.Add(reconcile.Request{NamespacedName: move.Resource(id)})
		d.queue <- q
	default: // not started yet: it will look at every Move when it does
	}
}

func ready(ctx context.Context, caughtUp <-chan struct{}, log *eventlog.Log) error {
	select {
	case <-caughtUp:
	default:
		return errors.New("still replaying the event log")
	}
	_, err := log.Head(ctx)
	return err
}

// always is a runnable that does not wait for leadership.
type always func(context.Context) error

func (f always) Start(ctx context.Context) error { return f(ctx) }
func (always) NeedLeaderElection() bool          { return false }
