package cluster

import (
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Create applies the objects of a cluster, waits until its control plane serves requests, and stores its kubeconfig. It does not downgrade
// a cluster that exists, and scales it only if the specification has replicas.
func Create(c *sequence.Context, p provider.Converter, apply task.Kind, folder string, manager access.ClusterRef, spec provider.Cluster) (provider.Access, error) {
	s, err := readFromManager(c, manager, spec)
	if err != nil {
		return provider.Access{}, err
	}
	wanted := spec
	if s.Object != nil && s.Object.GetDeletionTimestamp() == nil {
		if err := checkDowngrade(s, spec, "params.cluster.version"); err != nil {
			return provider.Access{}, err
		}
		wanted = withReplicas(s, spec)
	}
	objects, err := p.ClusterObjects(c, wanted)
	if err != nil {
		return provider.Access{}, err
	}
	if err := applyObjects(c, apply, manager, spec, objects); err != nil {
		return provider.Access{}, err
	}
	// Nodes become ready later, when a network plugin is installed.
	if err := wait(c, manager, spec, "to be initialized", uninitializedReasons, checkPresent); err != nil {
		return provider.Access{}, err
	}
	return StoreKubeconfig(c, p, folder, manager, spec)
}

// UndoCreate undoes Create. It keeps the kubeconfig Secret of a cluster that existed before, because the Secret may belong to the run that created it.
func UndoCreate(c *sequence.Context, apply task.Kind, folder string, manager access.ClusterRef, spec provider.Cluster) error {
	made, err := removeObjects(c, apply, manager, spec)
	if err != nil || !made && !c.Local() {
		return err
	}
	return RemoveKubeconfig(c, folder, manager, spec)
}
