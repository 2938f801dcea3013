package app

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"github.com/KimMachineGun/automemlimit/memlimit"
	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"scute.dev/controllers/workflow"
)

// stopGrace is how long a shutdown waits for steps that are in progress.
const stopGrace = 20 * time.Second

// Run runs the daemon until ctx ends. The next daemon continues unfinished work.
func Run(ctx context.Context, o Options) error {
	if err := o.Validate(); err != nil {
		return err
	}
	handler := o.handler()
	logger := slog.New(handler)
	ctrllog.SetLogger(logr.FromSlogHandler(handler))
	klog.SetSlogLogger(logger) // client-go's log lines, in the same format

	// With a memory limit, the garbage collector runs more often before the kernel would kill the
	// process at the limit of the container.
	if _, err := memlimit.Set(); err != nil {
		logger.Warn("the memory limit of the container is unknown: after a burst of work the daemon may run out of memory", "error", err)
	}
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
	d, err := newDaemon(ctx, o, config, home, logger)
	if err != nil {
		return err
	}
	logger.Info("scuted starts", "incarnation", home.incarnation, "log", home.where, "logId", home.log.ID())
	for _, w := range home.log.Warnings() {
		logger.Warn("the event log is less durable than it could be", "because", w)
	}
	err = d.manager.Start(ctx)
	if d.sealing != nil {
		d.sealing.publishFinal()
	}
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

// newClients returns clients whose user agent names a component of the daemon.
func newClients(config *rest.Config, component string) (*kubernetes.Clientset, error) {
	config = rest.AddUserAgent(rest.CopyConfig(config), component)
	config.Timeout = leaseTimeout
	return kubernetes.NewForConfig(config)
}

func (o *Options) wrap(held *tenure) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		if o.WrapTransport != nil {
			next = o.WrapTransport(next)
		}
		return held.fence(next)
	}
}

// newManager returns a manager. Its controllers write to the API server with the configuration
// acting. Events are recorded with config, because a process that does not lead also records
// events.
func newManager(o Options, config, acting *rest.Config, lock *lease, logger *slog.Logger) (manager.Manager, error) {
	scheme, err := newScheme()
	if err != nil {
		return nil, err
	}
	grace := stopGrace
	options := ctrl.Options{
		Scheme: scheme, Logger: logr.FromSlogHandler(logger.Handler()),
		Metrics:                 server.Options{BindAddress: o.MetricsAddress},
		HealthProbeBindAddress:  o.HealthAddress,
		Client:                  client.Options{Cache: &client.CacheOptions{DisableFor: []client.Object{&corev1.Secret{}}}},
		Cache:                   cache.Options{DefaultTransform: workflow.Cached}, // for all kinds
		GracefulShutdownTimeout: &grace,
		NewClient: func(_ *rest.Config, options client.Options) (client.Client, error) {
			options.HTTPClient = nil // use the HTTP client of the configuration
			return client.New(acting, options)
		},
	}
	if lock != nil {
		options.LeaderElection, options.LeaderElectionResourceLockInterface = true, lock
		options.LeaderElectionReleaseOnCancel = true
	}
	mgr, err := ctrl.NewManager(config, options)
	if err != nil {
		return nil, fmt.Errorf("preparing the controllers: %w", err)
	}
	return mgr, nil
}
