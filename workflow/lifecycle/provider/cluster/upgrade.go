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

// Upgrade applies the objects of a running cluster with the version to come, and waits until the cluster is settled, all its
// machines have the specification's version, and etcd and the control plane's components are healthy. The fields that it
// sets are taken over from any client that has set them: a move, for example, has written all of them.
func Upgrade(c *sequence.Context, p provider.Upgrader, apply task.Kind, manager access.ClusterRef, spec provider.Cluster) error {
	objects, _, err := upgradable(c, p, manager, spec)
	if err != nil {
		return err
	}
	no := false
	_, err = c.Perform(objectsPart, apply, applyWith{Manifests: objects, Cluster: manager, Namespace: spec.Namespace, Wait: &no, Force: true})
	if err != nil {
		return err
	}
	return upToDate(c, manager, spec)
}

// upToDate waits until all of a cluster has the version, and is settled and healthy.
func upToDate(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	return wait(c, manager, spec, "to have version "+spec.Version, func(s settled.State) []string { return outdated(s, spec.Version) }, beyond)
}

// upgradable returns the objects that lead to the specification's version, and the cluster as it is. It fails if a manager has no such Cluster, if
// that is being deleted, or if it has a newer version already.
func upgradable(c *sequence.Context, p provider.Upgrader, manager access.ClusterRef, spec provider.Cluster) ([]*unstructured.Unstructured, settled.State, error) {
	s, err := lookThrough(c, manager, spec)
	switch {
	case err != nil:
		return nil, s, err
	case s.Object == nil:
		return nil, s, errors.New("there is no Cluster " + spec.Namespace + "/" + spec.Name + " to upgrade: correct params.cluster, or params.management")
	}
	if err := beyond(s, spec); err != nil {
		return nil, s, err
	}
	objects, err := p.UpgradeObjects(c, sized(s, spec))
	if err != nil {
		return nil, s, err
	}
	if err := check(spec, objects); err != nil {
		return nil, s, task.Final(err)
	}
	return objects, s, nil
}

// Upgraded are the objects of a running cluster, as Upgrade applies them.
func Upgraded(c *sequence.Context, p provider.Upgrader, manager access.ClusterRef, spec provider.Cluster) ([]*unstructured.Unstructured, error) {
	s, err := lookThrough(c, manager, spec)
	if err != nil {
		return nil, err
	}
	return p.UpgradeObjects(c, sized(s, spec))
}

// beyond says why a Cluster will never have the specification's version: it is lost, or somebody has upgraded it further.
func beyond(s settled.State, spec provider.Cluster) error {
	if err := lost(s, spec); err != nil {
		return err
	}
	return downgrade(s, spec, "params.upgrade.version")
}

// downgrade refuses a specification whose version is older than one that the cluster wants.
func downgrade(s settled.State, spec provider.Cluster, parameter string) error {
	newer := newest(s, spec.Version)
	if newer == spec.Version {
		return nil
	}
	return task.Final(fmt.Errorf("Cluster %s/%s has version %s already: Kubernetes is not downgraded to %s: set %s to a newer one", //nolint:staticcheck // Cluster is the name of a kind
		spec.Namespace, spec.Name, newer, spec.Version, parameter))
}

// Downgrade is what Upgrade has for an inverse: none. Kubernetes is not downgraded once a machine has the new version; only
// a run that has changed nothing has nothing to undo.
func Downgrade(c *sequence.Context) error {
	if !c.Began(objectsPart) {
		return nil
	}
	return task.Final(errors.New("versions of Kubernetes are not downgraded: correct what failed and resume the run, which upgrades the rest"))
}
