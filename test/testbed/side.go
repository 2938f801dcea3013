package testbed

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/apiserver"
	"scute.dev/test/assets"
	"scute.dev/test/stack"
)

// Side is one management cluster of a bed.
type Side struct {
	bed  *Bed
	name string
	dir  string

	api         *apiserver.Server
	client      client.Client
	webhooks    stack.Webhooks
	controllers *stack.Controllers
	log         *os.File
}

func newSide(b *Bed, name string) (*Side, error) {
	s := &Side{bed: b, name: name, dir: filepath.Join(b.folder.Path, name)}
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return nil, fmt.Errorf("making the folder of %q: %w", name, err)
	}
	return s, nil
}

func (s *Side) startAPI(ctx context.Context, binaries assets.Binaries) error {
	var err error
	s.api, err = apiserver.Start(ctx, apiserver.Options{
		Name: s.name, Dir: s.dir, Binaries: binaries, Ports: s.bed.ports, Audit: s.bed.opts.Audit, Admission: s.bed.opts.Admission,
	})
	if err != nil {
		return err
	}
	if s.webhooks.Port, err = s.bed.ports.One(); err != nil {
		return err
	}
	s.webhooks.CABundle, s.webhooks.CertDir, err = s.api.WebhookServing()
	return err
}

func (s *Side) startStack(ctx context.Context) error {
	scheme, err := stack.NewScheme()
	if err != nil {
		return err
	}
	if s.client, err = client.New(s.Config(), client.Options{Scheme: scheme}); err != nil {
		return fmt.Errorf("making the client of %q: %w", s.name, err)
	}
	webhooks := &s.webhooks
	if s.bed.opts.Bare {
		webhooks = nil
	}
	if err := stack.Install(ctx, s.client, s.bed.modules, webhooks); err != nil {
		return err
	}
	if err := s.api.StartControllerManager(); err != nil {
		return err
	}
	if !s.bed.opts.Bare {
		if err := s.StartControllers(ctx); err != nil {
			return err
		}
	}
	return s.waitGarbageCollector(ctx)
}

// waitGarbageCollector waits until an orphan is deleted. Before that, objects whose owner does not exist would stay,
// which a real cluster deletes at once.
func (s *Side) waitGarbageCollector(ctx context.Context) error {
	orphan := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{
		Namespace: metav1.NamespaceDefault, Name: "testbed-orphan",
		OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "nobody", UID: "nobody"}},
	}}
	if err := s.client.Create(ctx, orphan); err != nil {
		return fmt.Errorf("probing the garbage collector of %q: %w", s.name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, 3*time.Minute)
	defer cancel()
	return s.waitFor(ctx, "the garbage collector of "+s.name, func(ctx context.Context) ([]string, error) {
		err := s.client.Get(ctx, client.ObjectKeyFromObject(orphan), orphan)
		if apierrors.IsNotFound(err) {
			return nil, nil
		}
		return []string{"it leaves an orphan in place"}, err
	})
}

func (s *Side) stopAPI(ctx context.Context) error {
	if s.api == nil {
		return nil
	}
	return s.api.Stop(ctx)
}

// Name returns the name from Options.Sides.
func (s *Side) Name() string { return s.name }

// Config returns a copy of the administrator's client configuration, without a client-side rate limit.
func (s *Side) Config() *rest.Config { return s.api.Config() }

// Client returns an administrator's client for the built-in kinds and those of Cluster API. It does not cache.
func (s *Side) Client() client.Client { return s.client }

// KubeconfigPath returns the path of the administrator's kubeconfig.
func (s *Side) KubeconfigPath() string { return s.api.KubeconfigPath() }

// Kubeconfig returns the administrator's kubeconfig, with all files embedded.
func (s *Side) Kubeconfig() ([]byte, error) { return apiserver.Kubeconfig(s.name, s.api.Config()) }

// AuditLog returns the path of the file with one JSON line (audit.k8s.io/v1 Event) per request. It is written if
// Options.Audit is set.
func (s *Side) AuditLog() string { return s.api.AuditLog() }

// Logs returns the folder with the logs of this side.
func (s *Side) Logs() string { return s.dir }

// KillAPIServer kills kube-apiserver with SIGKILL. Its data stays.
func (s *Side) KillAPIServer(ctx context.Context) error { return s.api.KillAPIServer(ctx) }

// StartAPIServer starts a killed kube-apiserver again at its old address, and waits until it is ready.
func (s *Side) StartAPIServer(ctx context.Context) error { return s.api.StartAPIServer(ctx) }

// ReviveAPIServer starts a killed kube-apiserver again, and restarts the controllers. Controllers that keep running
// reconnect their watches one kind at a time, within half a minute. A controller that sees a MachineSet before its
// Machines creates new ones, so a move to such a side would have to wait.
func (s *Side) ReviveAPIServer(ctx context.Context) error {
	if err := s.StartAPIServer(ctx); err != nil {
		return err
	}
	if err := s.StopControllers(); err != nil {
		return err
	}
	return s.StartControllers(ctx)
}

// KillEtcd kills the etcd of the API server with SIGKILL. Its data stays.
func (s *Side) KillEtcd(ctx context.Context) error { return s.api.KillEtcd(ctx) }

// StartEtcd starts a killed etcd again.
func (s *Side) StartEtcd(ctx context.Context) error { return s.api.StartEtcd(ctx) }

// StartControllers starts the Cluster API controllers and their webhooks, unless they run.
func (s *Side) StartControllers(ctx context.Context) error {
	if s.controllers != nil {
		return nil
	}
	log, file, err := openLog(filepath.Join(s.dir, "controllers.log"))
	if err != nil {
		return err
	}
	config := s.Config()
	config.UserAgent = "cluster-api"
	s.controllers, err = stack.Start(ctx, stack.Options{
		Name: s.name, Config: config, Cloud: s.bed.cloud, Webhooks: s.webhooks, Log: log,
		RateLimited: s.bed.opts.RateLimited,
	})
	if err != nil {
		file.Close()
		return fmt.Errorf("%w (log: %s)", err, file.Name())
	}
	s.log = file
	return nil
}

// StopControllers stops the Cluster API controllers and their webhooks, if they run. Until they are started again, the
// API server refuses to create or change Cluster API objects.
func (s *Side) StopControllers() error {
	if s.controllers == nil {
		return nil
	}
	err := s.controllers.Stop()
	s.controllers = nil
	s.log.Close()
	return err
}
