package providers

import (
	"context"
	"sync"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	ctlcluster "sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// refusals stops clusterctl's library when the API server rejects an object. Without it, the
// library retries for minutes and then only reports a timeout.
type refusals struct {
	mu   sync.Mutex
	stop context.CancelFunc
	err  error
}

func (r *refusals) watch(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.stop, r.err = cancel, nil
	return ctx, cancel
}

// record records the first rejection by the API server.
func (r *refusals) record(err error) error {
	if !apierrors.IsInvalid(err) && !apierrors.IsBadRequest(err) && !apierrors.IsForbidden(err) || apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.stop != nil && r.err == nil {
		r.err = err
		r.stop()
	}
	return err
}

// override returns the first rejection, if there is one, instead of err, because the rejection has
// more details.
func (r *refusals) override(err error) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil && r.err != nil {
		return task.Final(r.err)
	}
	return err
}

// refusalProxy makes the library's clients record rejections and annotate new inventory entries
// with the step's key.
type refusalProxy struct {
	ctlcluster.Proxy
	refusal *refusals
	key     string // the key of the step
}

// NewClient returns a client that records rejections and adds the annotation.
func (p refusalProxy) NewClient(ctx context.Context) (client.Client, error) {
	c, err := p.Proxy.NewClient(ctx)
	if err != nil {
		return nil, err
	}
	return refusalClient{Client: c, refusalProxy: p}, nil
}

type refusalClient struct {
	client.Client
	refusalProxy
}

func (c refusalClient) Create(ctx context.Context, o client.Object, options ...client.CreateOption) error {
	if entry, ok := o.(*clusterctlv1.Provider); ok {
		metav1.SetMetaDataAnnotation(&entry.ObjectMeta, access.StepKeyAnnotation, c.key)
	}
	return c.refusal.record(c.Client.Create(ctx, o, options...))
}

func (c refusalClient) Patch(ctx context.Context, o client.Object, patch client.Patch, options ...client.PatchOption) error {
	return c.refusal.record(c.Client.Patch(ctx, o, patch, options...))
}
