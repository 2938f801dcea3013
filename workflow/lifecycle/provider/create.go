package provider

import (
	"scute.dev/workflow/task"
)

// Create applies the cluster's objects, waits until its control plane serves requests, and stores
// its kubeconfig. It never downgrades an existing cluster, and scales it only if the specification
// says so.
func (t Target) Create(p Converter, apply task.Kind, folder string) (Access, error) {
	s, err := t.read()
	if err != nil {
		return Access{}, err
	}
	wanted := t.Cluster
	if s.Object != nil && s.Object.GetDeletionTimestamp() == nil {
		if err := checkDowngrade(s, t.Cluster, "params.cluster.version"); err != nil {
			return Access{}, err
		}
		wanted = withReplicas(s, t.Cluster)
	}
	objects, err := p.ClusterObjects(t.Context, wanted)
	if err != nil {
		return Access{}, err
	}
	if err := t.applyObjects(apply, objects); err != nil {
		return Access{}, err
	}
	// Nodes become ready later, when a network plugin is installed.
	if err := t.wait("to be initialized", uninitializedReasons, checkPresent); err != nil {
		return Access{}, err
	}
	return t.StoreKubeconfig(p, folder)
}

// UndoCreate undoes Create. It keeps the kubeconfig Secret of a cluster that existed before,
// because the Secret may belong to the run that created that cluster.
func (t Target) UndoCreate(apply task.Kind, folder string) error {
	made, err := t.removeObjects(apply)
	if err != nil || !made && !t.Local() {
		return err
	}
	return t.RemoveKubeconfig(folder)
}
