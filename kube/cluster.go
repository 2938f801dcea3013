package kube

import (
	"context"
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"scute.dev/kube/guard"
)

// FieldManager is the name under which scute writes fields.
const FieldManager = "scute"

// Cluster is one API server, reached with one set of credentials. Its methods may be called from many goroutines.
type Cluster struct {
	// Name is how messages call it: "source" or "target".
	Name string
	// Host is the API server's address, for messages.
	Host string

	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	access    authorization.AuthorizationV1Interface
}

// Connect prepares clients for the API server; it sends nothing. The client's own rate limit is switched off: the
// server's priority and fairness answers are what slows scute down.
func Connect(name string, config *rest.Config) (*Cluster, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.UserAgent = "scute/" + name
	c.Timeout = callTimeout
	c.WarningHandler = rest.NoWarnings{} // about manifests that scute does not write
	guard.BoundPages(c)
	if err := ConfirmDenials(c); err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the %s at %s: %w", name, c.Host, err)
	}
	cluster := &Cluster{Name: name, Host: c.Host}
	if cluster.dynamic, err = dynamic.NewForConfigAndClient(c, httpClient); err == nil {
		if cluster.metadata, err = metadata.NewForConfigAndClient(c, httpClient); err == nil {
			if cluster.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(c, httpClient); err == nil {
				cluster.access, err = authorization.NewForConfigAndClient(c, httpClient)
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("preparing clients for the %s at %s: %w", name, c.Host, err)
	}
	return cluster, nil
}

// Resource is the dynamic client for a kind in a namespace; namespace is ignored for kinds of the whole cluster.
func (c *Cluster) Resource(t Type, namespace string) dynamic.ResourceInterface {
	r := c.dynamic.Resource(t.Resource())
	if !t.Namespaced {
		return r
	}
	return r.Namespace(namespace)
}

// List calls fn for each object of a kind, page by page; namespace "" is all of them. A page is retried, fn is not.
func (c *Cluster) List(ctx context.Context, t Type, namespace string, fn func(*unstructured.Unstructured) error) error {
	return c.ListLabelled(ctx, t, namespace, "", fn)
}

// ListLabelled is List for the objects that a label selector matches.
func (c *Cluster) ListLabelled(ctx context.Context, t Type, namespace, selector string, fn func(*unstructured.Unstructured) error) error {
	return c.pages(ctx, t, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		o.LabelSelector = selector
		list, err := c.Resource(t, namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if err := fn(&list.Items[i]); err != nil {
				return "", &stopped{err}
			}
		}
		return list.GetContinue(), nil
	})
}

// ListMetadata is List without spec, status and data: what is wanted of Secrets. Managed fields are given only of an object that somebody
// uses server-side apply on: they are most of the metadata.
func (c *Cluster) ListMetadata(ctx context.Context, t Type, namespace string, fn func(*unstructured.Unstructured) error) error {
	var r metadata.ResourceInterface = c.metadata.Resource(t.Resource())
	if t.Namespaced && namespace != "" {
		r = c.metadata.Resource(t.Resource()).Namespace(namespace)
	}
	return c.pages(ctx, t, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := r.List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(t.GVK())
			setMetadata(u, &list.Items[i].ObjectMeta)
			if err := fn(u); err != nil {
				return "", &stopped{err}
			}
		}
		return list.GetContinue(), nil
	})
}

func setMetadata(u *unstructured.Unstructured, m *metav1.ObjectMeta) {
	u.SetNamespace(m.Namespace)
	u.SetName(m.Name)
	u.SetUID(m.UID)
	u.SetResourceVersion(m.ResourceVersion)
	u.SetLabels(m.Labels)
	u.SetAnnotations(m.Annotations)
	u.SetOwnerReferences(m.OwnerReferences)
	u.SetFinalizers(m.Finalizers)
	u.SetDeletionTimestamp(m.DeletionTimestamp)
	if slices.ContainsFunc(m.ManagedFields, func(e metav1.ManagedFieldsEntry) bool { return e.Operation == metav1.ManagedFieldsOperationApply }) {
		u.SetManagedFields(m.ManagedFields)
	}
}

// Get reads one object.
func (c *Cluster) Get(ctx context.Context, t Type, namespace, name string) (u *unstructured.Unstructured, err error) {
	err = c.Do(ctx, "get "+t.Kind+" "+name, func(ctx context.Context) error {
		u, err = c.Resource(t, namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return u, err
}

// NamespaceUID is the UID of a namespace; that of kube-system tells clusters apart.
func (c *Cluster) NamespaceUID(ctx context.Context, name string) (uid string, err error) {
	u, err := c.Get(ctx, Namespaces(), "", name)
	if err != nil {
		return "", err
	}
	return string(u.GetUID()), nil
}

// callTimeout bounds one request.
const callTimeout = 30 * time.Second

// Namespaces is the kind Namespace.
func Namespaces() Type {
	return Type{Kind: "Namespace", Plural: "namespaces", Versions: []string{"v1"}}
}

// Quotas is the kind ResourceQuota.
func Quotas() Type {
	return Type{Kind: "ResourceQuota", Plural: "resourcequotas", Versions: []string{"v1"}, Namespaced: true}
}
