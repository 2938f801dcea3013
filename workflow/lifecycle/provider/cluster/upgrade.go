package cluster

import (
	"errors"

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
	objects, err := p.UpgradeObjects(c, spec)
	if err != nil {
		return err
	}
	if err := check(spec, objects); err != nil {
		return task.Final(err)
	}
	if err := Upgradable(c, manager, spec); err != nil {
		return err
	}
	no := false
	_, err = c.Perform(objectsPart, apply, applyWith{Manifests: objects, Cluster: manager, Namespace: spec.Namespace, Wait: &no, Force: true})
	if err != nil {
		return err
	}
	return wait(c, manager, spec, "to have version "+spec.Version, func(s settled.State) []string { return outdated(s, spec.Version) })
}

// Upgradable fails if a manager has no such Cluster, or it is being deleted.
func Upgradable(c *sequence.Context, manager access.ClusterRef, spec provider.Cluster) error {
	on, err := c.Open(manager)
	if err != nil {
		return err
	}
	s, err := look(c, on, spec.Namespace, spec.Name)
	if err != nil {
		return err
	}
	if s.Object == nil {
		return errors.New("there is no Cluster " + spec.Namespace + "/" + spec.Name + " to upgrade: correct params.cluster, or params.management")
	}
	return lost(s, spec)
}

// Downgrade is what Upgrade has for an inverse: none. Kubernetes is not downgraded once a machine has the new version; only
// a run that has changed nothing has nothing to undo.
func Downgrade(c *sequence.Context) error {
	if !c.Began(objectsPart) {
		return nil
	}
	return task.Final(errors.New("versions of Kubernetes are not downgraded: correct what failed and resume the run, which upgrades the rest"))
}
