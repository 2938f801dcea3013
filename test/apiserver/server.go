package apiserver

import (
	"context"
	"crypto/x509/pkix"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/test/assets"
	"scute.dev/test/ports"
	"scute.dev/test/process"
)

// Options are the options of a Server.
type Options struct {
	Name     string // of the cluster in kubeconfigs
	Dir      string // an existing folder for data, certificates and logs
	Binaries assets.Binaries
	Ports    *ports.Block
	Audit    bool // write one line per request to audit.log
	// Admission are additional admission plugins.
	Admission []string
}

// Server is a running Kubernetes API server with its etcd. Only its methods that do not change it are safe for
// concurrent use.
type Server struct {
	opts   Options
	config *rest.Config
	ca     *authority
	ports  struct{ client, peer, api, manager int }

	etcd, api, manager *process.Process
}

const (
	startTimeout = 3 * time.Minute // 3 s on an idle machine; busy ones take much longer
	pollInterval = 50 * time.Millisecond
)

// Start starts etcd and kube-apiserver and returns when they are ready. The caller must call Stop.
func Start(ctx context.Context, opts Options) (_ *Server, err error) {
	s := &Server{opts: opts}
	defer func() {
		if err != nil {
			_ = s.Stop(context.WithoutCancel(ctx))
		}
	}()
	for _, p := range []*int{&s.ports.client, &s.ports.peer, &s.ports.api, &s.ports.manager} {
		if *p, err = opts.Ports.One(); err != nil {
			return nil, err
		}
	}
	if err := s.prepare(); err != nil {
		return nil, fmt.Errorf("preparing the API %q: %w", opts.Name, err)
	}
	if err := s.StartEtcd(ctx); err != nil {
		return nil, err
	}
	if err := s.StartAPIServer(ctx); err != nil {
		return nil, err
	}
	return s, nil
}

// StartControllerManager starts kube-controller-manager unless it runs, and does not wait for it. Its garbage collector
// discovers new kinds only every 30 s, so install CRDs first.
func (s *Server) StartControllerManager() (err error) {
	if s.manager != nil && s.manager.Exited() == nil {
		return nil
	}
	s.manager, err = process.Start(process.Spec{
		Path: s.opts.Binaries.ControllerManager, Args: s.managerArgs(), Log: s.path("kube-controller-manager.log"),
	})
	return err
}

// prepare creates the certificates and files for the programs.
func (s *Server) prepare() error {
	var err error
	if s.ca, err = newAuthority(); err != nil {
		return err
	}
	if err := os.WriteFile(s.path("ca.crt"), s.ca.pem, 0o600); err != nil {
		return err
	}
	for _, name := range []string{"apiserver", "service-account"} {
		pair, err := s.ca.issue(pkix.Name{CommonName: name})
		if err != nil {
			return err
		}
		if err := pair.write(s.opts.Dir, name); err != nil {
			return err
		}
	}
	admin, err := s.ca.issue(pkix.Name{CommonName: "admin", Organization: []string{"system:masters"}})
	if err != nil {
		return err
	}
	s.config = &rest.Config{
		Host:            fmt.Sprintf("https://127.0.0.1:%d", s.ports.api),
		TLSClientConfig: rest.TLSClientConfig{CAData: s.ca.pem, CertData: admin.cert, KeyData: admin.key},
		QPS:             -1, // the server limits requests with its own priority and fairness
	}
	kubeconfig, err := Kubeconfig(s.opts.Name, s.config)
	if err != nil {
		return err
	}
	if err := os.WriteFile(s.KubeconfigPath(), kubeconfig, 0o600); err != nil {
		return err
	}
	return os.WriteFile(s.path("audit-policy.yaml"), []byte(auditPolicy), 0o600)
}

// StartEtcd starts etcd unless it runs. It keeps its data.
func (s *Server) StartEtcd(ctx context.Context) error {
	return s.run(ctx, &s.etcd, process.Spec{Path: s.opts.Binaries.Etcd, Args: s.etcdArgs(), Log: s.path("etcd.log")},
		&rest.Config{Host: fmt.Sprintf("http://127.0.0.1:%d", s.ports.client)}, "/health")
}

// StartAPIServer starts kube-apiserver unless it runs, on the same port as before.
func (s *Server) StartAPIServer(ctx context.Context) error {
	return s.run(ctx, &s.api, process.Spec{Path: s.opts.Binaries.APIServer, Args: s.apiArgs(), Log: s.path("kube-apiserver.log")},
		s.config, "/readyz")
}

// KillEtcd kills etcd with SIGKILL.
func (s *Server) KillEtcd(ctx context.Context) error { return s.etcd.Kill(ctx) }

// KillAPIServer kills kube-apiserver with SIGKILL.
func (s *Server) KillAPIServer(ctx context.Context) error { return s.api.Kill(ctx) }

// Stop stops all processes. The files stay.
func (s *Server) Stop(ctx context.Context) error {
	for _, p := range []*process.Process{s.manager, s.api, s.etcd} {
		if p == nil {
			continue
		}
		// A graceful stop is not necessary, because the data is discarded.
		if err := p.Kill(ctx); err != nil {
			return fmt.Errorf("stopping the API %q: %w", s.opts.Name, err)
		}
	}
	return nil
}

// Config returns a copy of the administrator's configuration.
func (s *Server) Config() *rest.Config { return rest.CopyConfig(s.config) }

// KubeconfigPath returns the path of the administrator's kubeconfig.
func (s *Server) KubeconfigPath() string { return s.path("kubeconfig") }

// AuditLog returns the path of the file with one JSON line (audit.k8s.io/v1 Event) per request. It exists if
// Options.Audit is set.
func (s *Server) AuditLog() string { return s.path("audit.log") }

// WebhookServing returns the CA certificate, and a folder with tls.crt and tls.key for a server on 127.0.0.1.
func (s *Server) WebhookServing() (caBundle []byte, certDir string, err error) {
	certDir = s.path("webhooks")
	if err := os.MkdirAll(certDir, 0o700); err != nil {
		return nil, "", fmt.Errorf("making the certificate of the webhooks: %w", err)
	}
	pair, err := s.ca.issue(pkix.Name{CommonName: "webhooks"})
	if err != nil {
		return nil, "", err
	}
	return s.ca.pem, certDir, pair.write(certDir, "tls")
}

func (s *Server) path(name string) string { return filepath.Join(s.opts.Dir, name) }

// run starts a program unless it runs, and waits until it answers at path.
func (s *Server) run(ctx context.Context, slot **process.Process, spec process.Spec, config *rest.Config, path string) error {
	if *slot != nil && (*slot).Exited() == nil {
		return nil
	}
	p, err := process.Start(spec)
	if err != nil {
		return err
	}
	*slot = p
	return waitReady(ctx, p, config, path)
}
