package cloud

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sort"
	"sync"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	inmemoryruntime "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/runtime"
	inmemoryserver "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/server"

	"scute.dev/test/ports"
)

// WorkloadAPI is the author of writes through the API server of a workload cluster, whatever the client.
const WorkloadAPI = "workload api"

// Host is the address of every workload cluster's API server.
const Host = "127.0.0.1"

// Cloud has the machines of all workload clusters, and the content of their API servers.
type Cloud struct {
	backend inmemoryruntime.Manager
	mux     *inmemoryserver.WorkloadClustersMux
	journal *recorder
	cancel  context.CancelFunc

	kubelets kubelets
	hosts    hosts

	mu        sync.Mutex
	clusters  map[string]struct{}
	silent    map[string]struct{} // pods that are cut off, and Nodes that stay deleted: "namespace/name pod"
	databases map[string]Database // of etcd members: "namespace/name node"
}

// Start starts an empty cloud. Workload clusters listen on the ports of the block. A port is never reused.
func Start(ctx context.Context, block *ports.Block) (*Cloud, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		cloudv1.AddToScheme, corev1.AddToScheme, appsv1.AddToScheme, rbacv1.AddToScheme, storagev1.AddToScheme,
		apiextensionsv1.AddToScheme, policyv1.AddToScheme,
	} {
		if err := add(scheme); err != nil {
			return nil, fmt.Errorf("starting the cloud: %w", err)
		}
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	c := &Cloud{
		backend: inmemoryruntime.NewManager(scheme), journal: &recorder{}, cancel: cancel,
		clusters: map[string]struct{}{}, silent: map[string]struct{}{},
		kubelets: kubelets{dead: map[string]bool{}, conns: map[net.Conn]string{}}, hosts: hosts{of: map[string]string{}},
	}
	if err := c.backend.Start(ctx); err != nil {
		cancel()
		return nil, fmt.Errorf("starting the cloud: %w", err)
	}
	debug, err := block.One()
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting the cloud: %w", err)
	}
	low, high := block.Rest()
	c.hosts.network = fmt.Sprintf("127.%d", 100+low/500%100)
	c.mux, err = inmemoryserver.NewWorkloadClustersMux(c.As(WorkloadAPI), Host,
		inmemoryserver.CustomPorts{DebugPort: int32(debug), MinPort: int32(low), MaxPort: int32(high)})
	if err == nil {
		err = c.intercept(c.mux)
	}
	if err != nil {
		cancel()
		return nil, fmt.Errorf("starting the cloud: %w", err)
	}
	return c, nil
}

// Stop stops the API servers of all workload clusters and discards all data.
func (c *Cloud) Stop(ctx context.Context) error {
	defer c.cancel()
	defer c.hosts.close()
	var errs []error
	for name := range c.mux.ListListeners() {
		errs = append(errs, c.mux.StopListener(name)) // ends watches, for which Shutdown would wait
	}
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	errs = append(errs, c.mux.Shutdown(ctx))
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("stopping the cloud: %w", err)
	}
	return nil
}

// Mux returns the server of the workload clusters' APIs.
func (c *Cloud) Mux() *inmemoryserver.WorkloadClustersMux { return c.mux }

// As returns the cloud for an author: the journal records writes through it with this name.
func (c *Cloud) As(author string) inmemoryruntime.Manager {
	return &stamped{Manager: c.backend, cloud: c, author: author}
}

// Clusters returns the names of the workload clusters that exist, as "namespace/name", in order.
func (c *Cloud) Clusters() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	names := make([]string, 0, len(c.clusters))
	for name := range c.clusters {
		names = append(names, name)
	}
	sort.Strings(names)
	return names
}
