package provider

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube/settled"
	"scute.dev/workflow/task"
)

// Upgrade applies a running cluster's objects with the new version, and waits until outdatedReasons
// returns nothing. It forces ownership of the fields that it sets, because another field manager
// may own them, for example after a move.
func (t Target) Upgrade(p Upgrader, apply task.Kind) error {
	objects, _, err := t.upgradeObjects(p)
	if err != nil {
		return err
	}
	_, err = t.Perform(objectsPart, apply, ApplyWith{Manifests: objects, Cluster: t.Manager, Namespace: t.Namespace, Wait: new(false), Force: true})
	if err != nil {
		return err
	}
	return t.waitUpToDate()
}

func (t Target) waitUpToDate() error {
	return t.wait("to have version "+t.Version, func(s settled.State) []string { return outdatedReasons(s, t.Version) }, checkUpgradePossible)
}

// upgradeObjects returns the objects to apply and the cluster's state. It fails if the Cluster does
// not exist, is being deleted, or has a newer version.
func (t Target) upgradeObjects(p Upgrader) ([]*unstructured.Unstructured, settled.State, error) {
	s, err := t.read()
	switch {
	case err != nil:
		return nil, s, err
	case s.Object == nil:
		return nil, s, errors.New("Cluster " + t.fullName() + " does not exist: correct params.cluster, or params.management")
	}
	if err := checkUpgradePossible(s, t.Cluster); err != nil {
		return nil, s, err
	}
	objects, err := p.UpgradeObjects(t.Context, withReplicas(s, t.Cluster))
	if err != nil {
		return nil, s, err
	}
	if err := check(t.Cluster, objects); err != nil {
		return nil, s, task.Final(err)
	}
	return objects, s, nil
}

// AppliedObjects returns the objects of a running cluster in the form in which Upgrade applies
// them.
func (t Target) AppliedObjects(p Upgrader) ([]*unstructured.Unstructured, error) {
	s, err := t.read()
	if err != nil {
		return nil, err
	}
	return p.UpgradeObjects(t.Context, withReplicas(s, t.Cluster))
}

// checkUpgradePossible fails if a Cluster can never reach the version, because the Cluster is gone
// or already has a newer version.
func checkUpgradePossible(s settled.State, spec Cluster) error {
	if err := checkPresent(s, spec); err != nil {
		return err
	}
	return checkDowngrade(s, spec, "params.upgrade.version")
}

// checkDowngrade fails if the version is older than a version in the specs of the cluster.
func checkDowngrade(s settled.State, spec Cluster, parameter string) error {
	newer := newestVersion(s, spec.Version)
	if newer == spec.Version {
		return nil
	}
	return task.Final(fmt.Errorf("Cluster %s already has version %s: Kubernetes cannot be downgraded to %s: set %s to a newer version",
		spec.fullName(), newer, spec.Version, parameter))
}

// UndoUpgrade returns an error if the run has changed anything, because Kubernetes does not support downgrades.
func (t Target) UndoUpgrade() error {
	if !t.Started(objectsPart) {
		return nil
	}
	return task.Final(errors.New("Kubernetes cannot be downgraded: in a rollback, decide `mark-undone` to keep the new version; " + //nolint:staticcheck // a name
		"to upgrade the rest, start another run"))
}
