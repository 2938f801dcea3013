package kube

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	authorization "k8s.io/client-go/kubernetes/typed/authorization/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"scute.dev/kube/guard"
	"scute.dev/kube/object"
)

// FieldManager is the field manager of all of scute's writes.
const FieldManager = "scute"

// Cluster contains clients of one API server with one set of credentials. It is safe for concurrent
// use.
type Cluster struct {
	// Name is "source" or "target", for messages.
	Name string
	// Host is the API server's address, for messages.
	Host string
	// Config and HTTPClient are for creating further clients of the API server.
	Config     *rest.Config
	HTTPClient *http.Client

	dynamic   dynamic.Interface
	metadata  metadata.Interface
	discovery discovery.DiscoveryInterface
	access    authorization.AuthorizationV1Interface
}

// Connect prepares the clients of an API server and sends nothing. It disables client-go's rate
// limit, because the server's priority and fairness limits the requests.
func Connect(name string, config *rest.Config) (*Cluster, error) {
	c := rest.CopyConfig(config)
	c.QPS = -1
	c.UserAgent = "scute/" + name
	c.Timeout = callTimeout
	c.WarningHandler = rest.NoWarnings{} // about manifests that scute does not write
	guard.BoundPages(c)
	if err := confirmDenials(c); err != nil {
		return nil, err
	}
	httpClient, err := rest.HTTPClientFor(c)
	if err != nil {
		return nil, fmt.Errorf("preparing the connection to the %s at %s: %w", name, c.Host, err)
	}
	cluster := &Cluster{Name: name, Host: c.Host, Config: c, HTTPClient: httpClient}
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

// Resource returns the dynamic client for a kind. It ignores namespace if the kind is
// cluster-scoped.
func (c *Cluster) Resource(t Type, namespace string) dynamic.ResourceInterface {
	return c.dynamic.Resource(t.Resource()).Namespace(t.scope(namespace))
}

// List lists a kind page by page and calls fn for each object. An empty namespace lists all
// namespaces. Failed requests are retried; calls of fn are not.
func (c *Cluster) List(ctx context.Context, t Type, namespace string, fn func(*unstructured.Unstructured) error) error {
	return c.ListLabelled(ctx, t, namespace, "", fn)
}

// ListLabelled works like List, for the objects that a label selector matches.
func (c *Cluster) ListLabelled(ctx context.Context, t Type, namespace, selector string, fn func(*unstructured.Unstructured) error) error {
	return c.eachPage(ctx, t, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		o.LabelSelector = selector
		list, err := c.Resource(t, namespace).List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			if err := fn(&list.Items[i]); err != nil {
				return "", &callbackError{err}
			}
		}
		return list.GetContinue(), nil
	})
}

// ListMetadata works like List, for the metadata of objects, for example of Secrets. It keeps managed
// fields, which are most of the metadata, only if a field manager used server-side apply.
func (c *Cluster) ListMetadata(ctx context.Context, t Type, namespace string, fn func(*unstructured.Unstructured) error) error {
	r := c.metadata.Resource(t.Resource()).Namespace(t.scope(namespace))
	return c.eachPage(ctx, t, func(ctx context.Context, o metav1.ListOptions) (string, error) {
		list, err := r.List(ctx, o)
		if err != nil {
			return "", err
		}
		for i := range list.Items {
			u := &unstructured.Unstructured{Object: map[string]any{}}
			u.SetGroupVersionKind(t.GVK())
			setMetadata(u, &list.Items[i].ObjectMeta)
			if err := fn(u); err != nil {
				return "", &callbackError{err}
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

// Get returns one object.
func (c *Cluster) Get(ctx context.Context, t Type, namespace, name string) (u *unstructured.Unstructured, err error) {
	err = c.Do(ctx, "get "+t.Kind+" "+name, func(ctx context.Context) error {
		u, err = c.Resource(t, namespace).Get(ctx, name, metav1.GetOptions{})
		return err
	})
	return u, err
}

// Find returns one object, or nil if it does not exist.
func (c *Cluster) Find(ctx context.Context, t Type, ref object.Ref) (*unstructured.Unstructured, error) {
	u, err := c.Get(ctx, t, ref.Namespace, ref.Name)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return u, err
}

// NamespaceUID returns the UID of a namespace. The UID of kube-system identifies a cluster.
func (c *Cluster) NamespaceUID(ctx context.Context, name string) (uid string, err error) {
	u, err := c.Get(ctx, NamespaceType(), "", name)
	if err != nil {
		return "", err
	}
	return string(u.GetUID()), nil
}

const callTimeout = 30 * time.Second

// NamespaceType returns the kind Namespace.
func NamespaceType() Type {
	return Type{Kind: "Namespace", Plural: "namespaces", Versions: []string{"v1"}}
}

const (
	pageSize = 500
	// maxPages limits a list to a million objects: a faulty API server may never end it.
	maxPages = 2000
	// pageShrinkFactor divides the page size after a page was too large. A page counts as at least
	// minPageCount objects.
	pageShrinkFactor = 10
	minPageCount     = pageSize / pageShrinkFactor
)

// EachPage reads a list with a client whose pages are bounded (guard.BoundPages). If a page is too
// large, or too many large pages are being read, it retries with a smaller page. page returns the
// continue token, or "" at the end. list names the list in an error.
func EachPage(list string, page func(metav1.ListOptions) (next string, err error)) error {
	o := metav1.ListOptions{Limit: pageSize}
	for left := int64(maxPages * pageSize); left > 0; left -= max(o.Limit, minPageCount) {
		next, err := page(o)
		switch {
		case (errors.Is(err, guard.ErrTooLarge) || errors.Is(err, guard.ErrBusy)) && o.Limit > 1:
			o.Limit = max(o.Limit/pageShrinkFactor, 1)
		case err != nil || next == "":
			return err
		default:
			o.Continue, o.Limit = next, min(2*o.Limit, pageSize)
		}
	}
	return fmt.Errorf("%s: %w: more than %d pages", list, guard.ErrTooLarge, maxPages)
}

func (c *Cluster) eachPage(ctx context.Context, t Type, page func(context.Context, metav1.ListOptions) (string, error)) error {
	return EachPage(c.Name+": list "+t.Plural, func(o metav1.ListOptions) (next string, err error) {
		err = c.Do(ctx, "list "+t.Plural, func(ctx context.Context) (err error) {
			next, err = page(ctx, o)
			return err
		})
		return next, err
	})
}
