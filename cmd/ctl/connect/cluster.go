package connect

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator/ownerkind"
)

// CallTimeout is the timeout of one call to the API server.
const CallTimeout = 20 * time.Second

// Cluster is the management cluster of the kubeconfig's context.
type Cluster struct {
	Config *rest.Config
	// Client makes calls that end after CallTimeout.
	Client client.WithWatch
	// Namespace is --namespace, the context's namespace, or "default".
	Namespace string
}

// Cluster creates the clients. It sends no request.
func (f *Flags) Cluster() (*Cluster, error) {
	loader := f.loader()
	config, err := loader.ClientConfig()
	if err != nil {
		return nil, explainConfig(err)
	}
	config.UserAgent = "scutectl"
	config.QPS = -1 // no limit for an operator's commands
	namespace, _, err := loader.Namespace()
	if err != nil {
		return nil, explainConfig(err)
	}
	scheme := runtime.NewScheme()
	err = errors.Join(v1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme), authenticationv1.AddToScheme(scheme), authorizationv1.AddToScheme(scheme),
		coordinationv1.AddToScheme(scheme), clusterv1.AddToScheme(scheme), ownerkind.AddToScheme(scheme))
	if err != nil {
		return nil, err
	}
	timed := rest.CopyConfig(config)
	timed.Timeout = CallTimeout
	calls, err := client.NewWithWatch(timed, client.Options{Scheme: scheme})
	var watches client.WithWatch
	if err == nil {
		watches, err = client.NewWithWatch(config, client.Options{Scheme: scheme, Mapper: calls.RESTMapper()})
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", config.Host, err)
	}
	return &Cluster{Config: config, Client: timedClient{calls, watches}, Namespace: namespace}, nil
}

// timedClient is a client that limits each call to CallTimeout. It does not limit watches.
type timedClient struct {
	client.WithWatch
	watches client.WithWatch
}

// Watch sets no timeout.
func (c timedClient) Watch(ctx context.Context, list client.ObjectList, options ...client.ListOption) (watch.Interface, error) {
	return c.watches.Watch(ctx, list, options...)
}

var errNoKubeconfig = errors.New("no kubeconfig: set KUBECONFIG or --kubeconfig")

// ClusterOrLog works like Cluster, but its error also mentions the flags that read a log instead.
func (f *Flags) ClusterOrLog() (*Cluster, error) {
	c, err := f.Cluster()
	if errors.Is(err, errNoKubeconfig) {
		err = fmt.Errorf("%w, or read an event log with --local, --log or --nats", err)
	}
	return c, err
}

func explainConfig(err error) error {
	if clientcmd.IsEmptyConfig(err) {
		return errNoKubeconfig
	}
	return fmt.Errorf("reading the kubeconfig: %w", err)
}

// User returns the user name that the API server reports, or "" on error.
func (c *Cluster) User(ctx context.Context) string {
	review := &authenticationv1.SelfSubjectReview{}
	if err := c.Client.Create(ctx, review); err != nil {
		return ""
	}
	return review.Status.UserInfo.Username
}

// Explain adds to an error of the API server what the user can do.
func (c *Cluster) Explain(err error) error {
	switch {
	case err == nil:
		return nil
	case meta.IsNoMatchError(err):
		return fmt.Errorf("the cluster at %s does not serve scute's kinds: install scute there (helm install scute charts/scute), or choose another --context", c.Config.Host)
	case apierrors.IsUnauthorized(err):
		return fmt.Errorf("the cluster at %s does not accept your credentials: log in again: %w", c.Config.Host, err)
	case apierrors.IsForbidden(err) && about(err) == v1alpha1.GroupVersion().Group:
		return fmt.Errorf("%w: ask for the ClusterRole scute-operator, or scute-viewer for read access", err)
	case apierrors.IsForbidden(err):
		return fmt.Errorf("%w: ask for that permission", err)
	case errors.Is(err, context.DeadlineExceeded), utilnet.IsTimeout(err):
		return fmt.Errorf("the cluster at %s did not answer in time: try again if it is busy, or choose another --context: %w", c.Config.Host, err)
	case utilnet.IsConnectionRefused(err), utilnet.IsNoRoutesError(err):
		return fmt.Errorf("the cluster at %s cannot be reached: check --context: %w", c.Config.Host, err)
	default:
		return err
	}
}

func about(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) && status.Status().Details != nil {
		return status.Status().Details.Group
	}
	return ""
}

// Actor returns the actor for events of an operator. It is the user name that the API server
// reports or, if there is none, the name of the local user.
func Actor(ctx context.Context, cluster *Cluster) string {
	if cluster != nil {
		if name := cluster.User(ctx); name != "" {
			return "user/" + name
		}
	}
	if u, err := user.Current(); err == nil {
		return "user/" + u.Username
	}
	return "user/unknown"
}
