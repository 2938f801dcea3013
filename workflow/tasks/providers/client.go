package providers

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterctl "sigs.k8s.io/cluster-api/cmd/clusterctl/client"
	ctlcluster "sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	ctlconfig "sigs.k8s.io/cluster-api/cmd/clusterctl/client/config"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/repository"

	"scute.dev/internal/redact"
	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

type providerManager struct {
	call             *task.Call
	cluster          *access.Cluster
	kubeconfig       clusterctl.Kubeconfig
	close            func()
	clusterctlClient clusterctl.Client
	clusterClient    ctlcluster.Client
	secretValues     []string
	refusal          *refusals
	responseError    *atomic.Pointer[error] // why the last response ended early; nil if it was complete
}

func (p *Kind) open(ctx context.Context, c *task.Call, cluster *access.Cluster, on access.ClusterRef, w *With) (*providerManager, error) {
	reader, err := p.reader(ctx, c, w)
	if err != nil {
		return nil, err
	}
	config, err := ctlconfig.New(ctx, "", ctlconfig.InjectReader(reader))
	if err != nil {
		return nil, err
	}
	target, stop, cut := cluster.Config, func() {}, new(atomic.Pointer[error])
	if !p.Clusters.Local && on.KubeconfigSecretRef != nil {
		if target, stop, err = relay(target, func(err error) { cut.Store(&err) }); err != nil {
			return nil, fmt.Errorf("with.cluster.kubeconfigSecretRef: %w", err)
		}
	}
	path, remove, err := writeKubeconfig(c, target)
	if err != nil {
		stop()
		return nil, err
	}
	release := func() {
		remove()
		stop()
	}
	a := &providerManager{call: c, cluster: cluster, kubeconfig: clusterctl.Kubeconfig{Path: path}, close: release, secretValues: reader.secretValues, refusal: &refusals{}, responseError: cut}
	proxy := refusalProxy{
		Proxy:   ctlcluster.NewProxy(ctlcluster.Kubeconfig{Path: path}, ctlcluster.InjectWarningHandler(noWarnings{})),
		refusal: a.refusal,
		key:     c.StepKey(),
	}
	a.clusterClient = ctlcluster.New(ctlcluster.Kubeconfig{Path: path}, config, ctlcluster.InjectProxy(proxy), ctlcluster.InjectRepositoryFactory(p.repositories(c.Namespace)))
	if w != nil && w.SkipCertManager {
		a.clusterClient = withoutCertManager{Client: a.clusterClient, cluster: cluster}
	}
	a.clusterctlClient, err = clusterctl.New(ctx, "", clusterctl.InjectConfig(config),
		clusterctl.InjectRepositoryFactory(func(ctx context.Context, in clusterctl.RepositoryClientFactoryInput) (repository.Client, error) {
			return p.repositories(c.Namespace)(ctx, in.Provider, config, repository.InjectYamlProcessor(in.Processor))
		}),
		clusterctl.InjectClusterClientFactory(func(clusterctl.ClusterClientFactoryInput) (ctlcluster.Client, error) { return a.clusterClient, nil }))
	if err != nil {
		release()
		return nil, err
	}
	return a, nil
}

type noWarnings struct{}

func (noWarnings) HandleWarningHeader(int, string, string) {}

// withoutCertManager is a client that does not manage cert-manager.
type withoutCertManager struct {
	ctlcluster.Client
	cluster *access.Cluster
}

// CertManager returns a client that only checks that cert-manager's kinds are served.
func (w withoutCertManager) CertManager() ctlcluster.CertManagerClient {
	return foreignCertManager{cluster: w.cluster}
}

type foreignCertManager struct {
	ctlcluster.CertManagerClient
	cluster *access.Cluster
}

// EnsureInstalled returns an error if a kind is missing.
func (f foreignCertManager) EnsureInstalled(context.Context) error {
	for _, kind := range []string{"Certificate", "Issuer"} {
		if _, err := f.cluster.Client.RESTMapper().RESTMapping(schema.GroupKind{Group: "cert-manager.io", Kind: kind}); err != nil {
			return task.Final(fmt.Errorf("with.skipCertManager: the cluster does not serve %s.cert-manager.io: install cert-manager first, or let clusterctl do it: %w", kind, err))
		}
	}
	return nil
}

// EnsureLatestVersion does nothing.
func (foreignCertManager) EnsureLatestVersion(context.Context) error { return nil }

type redactedError struct {
	text  string
	cause error
}

func (e *redactedError) Error() string { return e.text }

func (e *redactedError) Unwrap() error { return e.cause }

// secretForms returns the texts by which an error may quote a value: the whole value, or one line
// that is not very short. Each text is returned plain and quoted.
func secretForms(value string) (all []string) {
	const short = 6
	for i, part := range append([]string{value}, strings.Split(value, "\n")...) {
		if part = strings.TrimSpace(part); part != "" && (i == 0 || len(part) >= short) {
			quoted := strconv.Quote(part)
			all = append(all, part, quoted[1:len(quoted)-1])
		}
	}
	return all
}

// redactError removes the values of the Secret's variables from an error. An API server that
// rejects an object quotes the object's content.
func (a *providerManager) redactError(err error) error {
	if err == nil {
		return nil
	}
	if cut := a.responseError.Swap(nil); cut != nil && *cut != nil {
		err = fmt.Errorf("%w: a response ended early: %w", err, *cut)
	}
	text := err.Error()
	for _, value := range a.secretValues {
		for _, written := range secretForms(value) {
			text = strings.ReplaceAll(text, written, redact.Removed)
		}
	}
	err = &redactedError{text: redact.Message(text), cause: err}
	if !task.IsFinal(err) && (apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || errors.Is(err, guard.ErrTooLarge)) {
		return task.Final(err)
	}
	return err
}
