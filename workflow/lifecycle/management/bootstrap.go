package management

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"

	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// Bootstrap is the temporary cluster that manages a management cluster while it is created,
// upgraded or deleted.
type Bootstrap interface {
	// Create creates the cluster, or continues with the one of an earlier attempt, and waits for
	// its API server. It returns a reference, because the log never contains a kubeconfig.
	Create(c *provider.Context) (access.ClusterRef, error)
}

// temporaryBootstrap is a Bootstrap whose cluster the run creates, and deletes when it is no longer
// needed.
type temporaryBootstrap interface {
	Bootstrap
	// Delete deletes the cluster that Create created, and no other. A cluster that does not exist
	// counts as deleted.
	Delete(c *provider.Context) error
	// Exists reports whether the cluster exists, even if it does not respond.
	Exists(c *provider.Context) (bool, error)
}

// BootstrapParams select the bootstrap cluster. Exactly one field is set.
type BootstrapParams struct {
	// Cluster is an existing cluster, which is never deleted. In the daemon, {} is its own cluster.
	Cluster *access.ClusterRef `json:"cluster,omitempty"`
	// Kind creates a cluster in Docker on the machine of a local run.
	Kind *Kind `json:"kind,omitempty"`
}

// New returns the Bootstrap that the parameters select. It writes kubeconfigs to folder.
func (p BootstrapParams) New(folder string) Bootstrap {
	if p.Kind == nil {
		return existingCluster{*p.Cluster}
	}
	k := *p.Kind
	k.folder = folder
	return &k
}

type existingCluster struct{ ref access.ClusterRef }

// Create returns the reference to the cluster after the cluster has responded.
func (e existingCluster) Create(c *provider.Context) (access.ClusterRef, error) {
	if err := c.Record("bootstrap", clusterRecord{}, true); err != nil {
		return e.ref, err
	}
	return e.ref, waitForServer(c, e.ref)
}

type clusterRecord struct {
	Name string `json:"name,omitempty"`
	// Ready is set once the cluster has responded. After that, clusters may have been moved to it.
	Ready bool `json:"ready,omitempty"`
}

const serverTimeout = time.Minute

// waitForServer waits until the API server responds. It requests the version, because every
// authenticated user may read it.
func waitForServer(c *provider.Context, ref access.ClusterRef) error {
	on, err := c.Open(ref)
	if err != nil {
		return fmt.Errorf("connecting to the bootstrap cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(c, serverTimeout)
	defer cancel()
	versions, err := discovery.NewDiscoveryClientForConfig(on.Config)
	if err == nil {
		err = on.Kube.Do(ctx, "get its version", func(ctx context.Context) error {
			return versions.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
		})
	}
	if err != nil {
		return fmt.Errorf("connecting to the bootstrap cluster at %s: %w", on.Config.Host, err)
	}
	return nil
}
