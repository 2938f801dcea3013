package cluster

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/settled"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// Upgrade applies the objects of a running cluster with the new version, and waits until the cluster is settled, all its
// machines have that version, and etcd and the control plane's components are healthy. It forces the ownership of the fields
// that it sets, because other clients, for example a move, may own them.
func Upgrade(c *sequence.Context, p provider.Upgrader, apply task.Kind, manager access.ClusterRef, spec provider.Cluster) error {
	objects, _, err := upgradeObjects(c, p, manager, spec)
	if err != nil {
		return err
	}
	no := false
	_, err = c.Perform(objectsPart, apply, applyWith{Manifests: objects, Cluster: manager, Namespace: spec.Namespace, Wait: &no, Force: true})
	if err != nil {
		return err
	}
	return waitUpToDate(c, manager, spec)
}

// waitUpToDate waits until all of a cluster has the version, and is settled and healthy.
func waitUpToDate(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	return wait(c, manager, spec, "to have version "+spec.Version, func(s settled.State) []string { return outdatedReasons(s, spec.Version) }, checkUpgradePossible)
}

// upgradeObjects returns the objects with the specification's version, and the state of the cluster. It fails if the Cluster does not exist, is being
// deleted, or has a newer version already.
func upgradeObjects(c *sequence.Context, p provider.Upgrader, manager access.ClusterRef, spec provider.Cluster) ([]*unstructured.Unstructured, settled.State, error) {
	s, err := readFromManager(c, manager, spec)
	switch {
	case err != nil:
		return nil, s, err
	case s.Object == nil:
		return nil, s, errors.New("Cluster " + spec.Namespace + "/" + spec.Name + " does not exist: correct params.cluster, or params.management")
	}
	if err := checkUpgradePossible(s, spec); err != nil {
		return nil, s, err
	}
	objects, err := p.UpgradeObjects(c, withReplicas(s, spec))
	if err != nil {
		return nil, s, err
	}
	if err := check(spec, objects); err != nil {
		return nil, s, task.Final(err)
	}
	return objects, s, nil
}

// UpgradeObjects returns the objects of a running cluster, as Upgrade applies them.
func UpgradeObjects(c *sequence.Context, p provider.Upgrader, manager access.ClusterRef, spec provider.Cluster) ([]*unstructured.Unstructured, error) {
	s, err := readFromManager(c, manager, spec)
	if err != nil {
		return nil, err
	}
	return p.UpgradeObjects(c, withReplicas(s, spec))
}

// checkUpgradePossible returns an error if a Cluster will never have the specification's version, because it is lost or has a newer version.
func checkUpgradePossible(s settled.State, spec provider.Cluster) error {
	if err := checkPresent(s, spec); err != nil {
		return err
	}
	return checkDowngrade(s, spec, "params.upgrade.version")
}

// checkDowngrade returns an error if the specification's version is older than a version in the specs of the cluster.
func checkDowngrade(s settled.State, spec provider.Cluster, parameter string) error {
	newer := newestVersion(s, spec.Version)
	if newer == spec.Version {
		return nil
	}
	return task.Final(fmt.Errorf("Cluster %s/%s already has version %s: Kubernetes cannot be downgraded to %s: set %s to a newer version", //nolint:staticcheck // Cluster is the name of a kind
		spec.Namespace, spec.Name, newer, spec.Version, parameter))
}

// UndoUpgrade undoes Upgrade. It returns an error if the run has changed anything, because Kubernetes does not support downgrades.
func UndoUpgrade(c *sequence.Context) error {
	if !c.Started(objectsPart) {
		return nil
	}
	return task.Final(errors.New("Kubernetes cannot be downgraded: in a rollback, decide `mark-undone` to keep the new version; " + //nolint:staticcheck // a name
		"to upgrade the rest, start another run"))
}
