package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"scute.dev/internal/fair"
	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/workflow/task"
)

// ClusterRef selects the API server of a task. The zero value is the run's own cluster: the
// management cluster of the daemon, or the current context of the operator's kubeconfig.
type ClusterRef struct {
	// Kubeconfig is a file, for local runs. Context is one of its contexts.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Context    string `json:"context,omitempty"`
	// KubeconfigSecretRef is a Secret in the run's namespace on the run's own cluster. Key defaults to "value".
	KubeconfigSecretRef *SecretKey `json:"kubeconfigSecretRef,omitempty"`
	// AllowInsecure accepts a kubeconfig from a Secret that uses http or does not verify the
	// server's certificate.
	AllowInsecure bool `json:"allowInsecure,omitempty"`
}

func (r ClusterRef) isOwn() bool { return r == ClusterRef{AllowInsecure: r.AllowInsecure} }

// SecretKey is one key of a Secret.
type SecretKey struct {
	// Namespace defaults to the run's; only a local run may use another one.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	Key       string `json:"key,omitempty"`
}

// Cluster is an API server, together with clients for it.
type Cluster struct {
	Config *rest.Config
	// Client does not cache. It supports unstructured objects of every kind on the server.
	Client client.WithWatch
	// Kube retries requests; see kube.Cluster.Do.
	Kube *kube.Cluster

	// pages limits how many pages of objects Each keeps in memory, fairly between the namespaces of
	// the runs.
	pages     *fair.Slots
	namespace string
}

// Clusters opens API servers for tasks. It is safe for concurrent use.
type Clusters struct {
	// Own returns the configuration of the run's own cluster; nil if there is none.
	Own func() (*rest.Config, error)
	// Local is set for local runs, which use the operator's credentials and may use kubeconfig
	// files. In the daemon, all requests impersonate the run's ServiceAccount.
	Local bool
	// Guard restricts the addresses that tasks of the daemon may reach, apart from the run's own
	// cluster. Local runs are not restricted.
	Guard *guard.Guard
	// Wrap wraps the daemon's connections to other clusters; may be nil.
	Wrap func(http.RoundTripper) http.RoundTripper
	// Pages limits how many pages of selected objects are in memory, each up to 50 MiB. OtherPages is
	// a separate limit for pages of other clusters, which may respond slowly. nil means no limit.
	Pages, OtherPages *fair.Slots

	// daemon is set if requests use the daemon's own identity.
	daemon bool

	kindsOnce sync.Once
	kinds     *lru.Cache
}

// IsLocal reports whether the tasks belong to a local run. It returns false if cs is nil.
func (cs *Clusters) IsLocal() bool { return cs != nil && cs.Local }

// AsDaemon returns Clusters that open the run's own cluster with the daemon's permissions, because
// the ServiceAccount may have lost its permissions. Use it only to release objects that have the
// run's annotation of a hold. ok is false in a local run and for other clusters.
func (cs *Clusters) AsDaemon(ref ClusterRef) (in *Clusters, ok bool) {
	if cs.Local || !ref.isOwn() {
		return nil, false
	}
	return &Clusters{Own: cs.Own, daemon: true}, true
}

// Open returns clients for a cluster. An error about an input names the field. All other errors are
// from the cluster that contains the Secret.
func (cs *Clusters) Open(ctx context.Context, c *task.Call, ref ClusterRef) (*Cluster, error) {
	config, err := cs.config(ctx, c, ref)
	if err != nil {
		return nil, err
	}
	pages := cs.Pages
	var cluster *Cluster
	if ref.isOwn() {
		cluster, err = cs.connectOwn(ctx, config, c)
	} else {
		pages = cs.OtherPages
		cluster, err = connect(config, nil)
	}
	if err != nil {
		return nil, err
	}
	cluster.pages, cluster.namespace = pages, c.Namespace
	return cluster, nil
}

func (cs *Clusters) config(ctx context.Context, c *task.Call, ref ClusterRef) (*rest.Config, error) {
	switch {
	case ref.Kubeconfig != "" || ref.Context != "":
		if !cs.Local {
			return nil, task.Final(errors.New("with.cluster.kubeconfig: a file can only be used in a local run: use kubeconfigSecretRef"))
		}
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		if ref.Kubeconfig != "" {
			if _, err := os.Stat(ref.Kubeconfig); err != nil {
				return nil, fmt.Errorf("with.cluster.kubeconfig: %w", err)
			}
			rules.ExplicitPath = ref.Kubeconfig
		}
		config, err := clientcmd.NewNonInteractiveDeferredLoadingClientConfig(rules, &clientcmd.ConfigOverrides{CurrentContext: ref.Context}).ClientConfig()
		if err != nil {
			return nil, fmt.Errorf("with.cluster: %w", err)
		}
		return config, nil
	case ref.KubeconfigSecretRef != nil:
		return cs.configFromSecret(ctx, c, ref.KubeconfigSecretRef, ref.AllowInsecure)
	default:
		return cs.ownConfig(c)
	}
}

// ownConfig returns the configuration for the run's own cluster. In the daemon it impersonates the
// run's ServiceAccount.
func (cs *Clusters) ownConfig(c *task.Call) (*rest.Config, error) {
	if cs.Own == nil {
		return nil, errors.New("with.cluster: no cluster is configured: set KUBECONFIG, or name a kubeconfig")
	}
	config, err := cs.Own()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if !cs.Local && !cs.daemon {
		if c.ServiceAccount == "" {
			return nil, task.Final(errors.New("spec.serviceAccountName is empty: set it to the ServiceAccount that the tasks act as"))
		}
		config.Impersonate = rest.ImpersonationConfig{UserName: "system:serviceaccount:" + c.Namespace + ":" + c.ServiceAccount}
	}
	return config, nil
}

func (cs *Clusters) configFromSecret(ctx context.Context, c *task.Call, ref *SecretKey, insecure bool) (*rest.Config, error) {
	name, key := types.NamespacedName{Namespace: cmp.Or(ref.Namespace, c.Namespace), Name: ref.Name}, cmp.Or(ref.Key, "value")
	if !cs.Local && name.Namespace != c.Namespace {
		return nil, task.Final(errors.New("with.cluster.kubeconfigSecretRef.namespace: only a local run can use another namespace"))
	}
	config, err := cs.ownConfig(c)
	if err != nil {
		return nil, err
	}
	own, err := cs.connectOwn(ctx, config, c)
	if err != nil {
		return nil, err
	}
	data, err := own.Data(ctx, "Secret", name)
	if err != nil {
		return nil, fmt.Errorf("with.cluster.kubeconfigSecretRef: %w", err)
	}
	if len(data[key]) == 0 {
		return nil, fmt.Errorf("with.cluster.kubeconfigSecretRef: Secret %s has no key %q", name, key)
	}
	config, err = kube.ParseKubeconfig(data[key])
	if err != nil {
		return nil, fmt.Errorf("with.cluster.kubeconfigSecretRef: Secret %s: %w", name, err)
	}
	if err := kube.CheckTransportSecurity(config); err != nil && !insecure {
		return nil, task.Final(fmt.Errorf("with.cluster.kubeconfigSecretRef: Secret %s: %w, or set allowInsecure: true beside kubeconfigSecretRef", name, err))
	}
	if !cs.Local {
		cs.Guard.Protect(config, c.Namespace)
		if cs.Wrap != nil {
			config.Wrap(cs.Wrap)
		}
	}
	return config, nil
}

// cachedKinds is the number of namespaces for which the discovered kinds of the run's own cluster
// are cached.
const cachedKinds = 32

// connectOwn connects to the run's own cluster. The runs of a namespace share the discovered kinds,
// which take hundreds of KiB of memory for as long as a task waits.
func (cs *Clusters) connectOwn(ctx context.Context, config *rest.Config, c *task.Call) (*Cluster, error) {
	if cs.Local {
		return connectLocal(ctx, config, c.Dir)
	}
	cs.kindsOnce.Do(func() { cs.kinds = lru.New(cachedKinds) })
	known, _ := cs.kinds.Get(c.Namespace)
	mapper, _ := known.(meta.RESTMapper)
	cluster, err := connect(config, mapper)
	if err == nil && mapper == nil {
		cs.kinds.Add(c.Namespace, cluster.Client.RESTMapper())
	}
	return cluster, err
}

// connect returns clients for an API server. If kinds is nil, it discovers the kinds.
func connect(config *rest.Config, kinds meta.RESTMapper) (*Cluster, error) {
	k, err := kube.Connect("cluster", config)
	if err != nil {
		return nil, err
	}
	if kinds == nil {
		kinds, err = newExactKinds(k.Config, k.HTTPClient)
	}
	var c client.WithWatch
	if err == nil {
		c, err = client.NewWithWatch(k.Config, client.Options{HTTPClient: k.HTTPClient, Mapper: kinds})
	}
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to %s: %w", k.Host, err)
	}
	return &Cluster{Config: k.Config, Client: c, Kube: k}, nil
}

// exactKinds rejects a kind whose spelling differs from that of the API server. client-go also
// accepts "secret", which scute would not treat as a Secret.
type exactKinds struct{ meta.RESTMapper }

func newExactKinds(config *rest.Config, client *http.Client) (meta.RESTMapper, error) {
	mapper, err := apiutil.NewDynamicRESTMapper(config, client)
	return exactKinds{mapper}, err
}

// RESTMapping returns the mapping of a kind. For a wrong spelling it returns a bad request error,
// which is not retried.
func (m exactKinds) RESTMapping(kind schema.GroupKind, versions ...string) (*meta.RESTMapping, error) {
	mapping, err := m.RESTMapper.RESTMapping(kind, versions...)
	if err != nil {
		return nil, err
	}
	if served, err := m.KindFor(mapping.Resource); err == nil && served.Kind != kind.Kind {
		return nil, apierrors.NewBadRequest(fmt.Sprintf("kind %q is spelled %q: correct the spelling", kind.Kind, served.Kind))
	}
	return mapping, nil
}
