package cloud

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryclient "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime/client"
	inmemorygroup "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime/resourcegroup"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// stamped is the backend for one author. It writes the journal, because the backend's own informers report neither
// deletions nor the author of a write.
type stamped struct {
	inmemoryruntime.Manager
	cloud  *Cloud
	author string
}

// AddResourceGroup creates the storage of one workload cluster, "namespace/name", unless it exists.
func (s *stamped) AddResourceGroup(name string) {
	s.cloud.mu.Lock()
	defer s.cloud.mu.Unlock()
	_, exists := s.cloud.clusters[name]
	s.Manager.AddResourceGroup(name)
	s.cloud.clusters[name] = struct{}{}
	if !exists {
		s.record(Write{Verb: Create, Cluster: name, Kind: clusterKind, Name: name, Changed: true})
	}
}

// DeleteResourceGroup deletes everything of one workload cluster.
func (s *stamped) DeleteResourceGroup(name string) {
	s.cloud.mu.Lock()
	defer s.cloud.mu.Unlock()
	_, exists := s.cloud.clusters[name]
	s.Manager.DeleteResourceGroup(name)
	delete(s.cloud.clusters, name)
	s.record(Write{Verb: Delete, Cluster: name, Kind: clusterKind, Name: name, Changed: exists})
}

func (s *stamped) GetResourceGroup(name string) inmemorygroup.ResourceGroup {
	return &stampedGroup{stamped: s, cluster: name, inner: s.Manager.GetResourceGroup(name)}
}

func (s *stamped) record(w Write) {
	w.By = s.author
	s.cloud.journal.add(w)
}

type stampedGroup struct {
	*stamped
	cluster string
	inner   inmemorygroup.ResourceGroup
}

func (g *stampedGroup) GetClient() inmemoryclient.Client {
	return &stampedClient{Client: g.inner.GetClient(), group: g}
}

type stampedClient struct {
	inmemoryclient.Client
	group *stampedGroup
}

func (c *stampedClient) Get(ctx context.Context, key client.ObjectKey, obj client.Object) error {
	if _, node := obj.(*corev1.Node); node && c.group.author != WorkloadAPI && c.group.cloud.silenced(c.group.cluster, key.Name) {
		return nil // otherwise the provider would create it again
	}
	if err := c.Client.Get(ctx, key, obj); err != nil {
		return err
	}
	if c.group.cloud.hidden(c.group.author, c.group.cluster, obj) {
		return errSilent
	}
	return nil
}

func (c *stampedClient) Create(ctx context.Context, obj client.Object) error {
	err := c.Client.Create(ctx, obj)
	c.record(Create, obj, err == nil, err)
	return err
}

func (c *stampedClient) Update(ctx context.Context, obj client.Object) error {
	before := c.version(ctx, obj)
	err := c.Client.Update(ctx, obj)
	c.record(Update, obj, err == nil && obj.GetResourceVersion() != before, err)
	return err
}

func (c *stampedClient) Patch(ctx context.Context, obj client.Object, patch client.Patch) error {
	before := c.version(ctx, obj)
	err := c.Client.Patch(ctx, obj, patch)
	c.record(Patch, obj, err == nil && obj.GetResourceVersion() != before, err)
	return err
}

func (c *stampedClient) Delete(ctx context.Context, obj client.Object) error {
	err := c.Client.Delete(ctx, obj)
	if _, pod := obj.(*corev1.Pod); pod && c.group.author != WorkloadAPI {
		c.group.cloud.wake(c.group.cluster, obj.GetName()) // its machine is deleted
	}
	c.record(Delete, obj, err == nil, err)
	return err
}

// version returns the resource version of the stored object, or "".
func (c *stampedClient) version(ctx context.Context, obj client.Object) string {
	gvk, err := apiutil.GVKForObject(obj, c.group.GetScheme())
	if err != nil {
		return ""
	}
	stored, err := c.group.GetScheme().New(gvk)
	if err != nil {
		return ""
	}
	current, ok := stored.(client.Object)
	if !ok || c.Client.Get(ctx, client.ObjectKeyFromObject(obj), current) != nil {
		return ""
	}
	return current.GetResourceVersion()
}

func (c *stampedClient) record(verb Verb, obj client.Object, changed bool, err error) {
	w := Write{Verb: verb, Cluster: c.group.cluster, Kind: kindOf(obj, c.group.GetScheme()), Name: nameOf(obj), Changed: changed}
	if err != nil {
		w.Error = string(apierrors.ReasonForError(err))
		if w.Error == "" {
			w.Error = err.Error()
		}
	}
	c.group.record(w)
}

func kindOf(obj client.Object, scheme *runtime.Scheme) string {
	gvk, err := apiutil.GVKForObject(obj, scheme)
	if err != nil {
		return obj.GetObjectKind().GroupVersionKind().Kind
	}
	return gvk.Kind
}

func nameOf(obj client.Object) string {
	if obj.GetNamespace() == "" {
		return obj.GetName()
	}
	return obj.GetNamespace() + "/" + obj.GetName()
}
