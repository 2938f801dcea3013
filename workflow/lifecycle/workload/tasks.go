package workload

import "scute.dev/workflow/lifecycle/hook"

// The tasks of Create.
const (
	// PreCreate does nothing: it is the place for hooks before the workflow.
	PreCreate hook.Task[Managed, Managed] = "pre-create"

	// CreateWorkloadCluster has the provider convert the specification, applies the objects on the management cluster, waits
	// until the control plane takes requests, and keeps the way there. Nodes need not be ready: there is no network yet.
	// Undo: the cluster is deleted and gone with all its machines.
	CreateWorkloadCluster hook.Task[Managed, Reached] = "create-workload-cluster"

	// InstallNetworking has the provider bring the network, and waits until the cluster is available: all nodes ready.
	// Undo: the network is removed.
	InstallNetworking hook.Task[Reached, Reached] = "install-networking"

	// InstallComponents has the provider bring what belongs on every workload cluster: for example the objects by which it is
	// known later. Undo: what it installed is removed.
	InstallComponents hook.Task[Reached, Reached] = "install-components"

	// PostCreate does nothing: it is the place for hooks after the workflow, among them the one that writes the
	// configuration that was applied.
	PostCreate hook.Task[Reached, Reached] = "post-create"
)

// The tasks of Upgrade.
const (
	// PreUpgrade looks whether there is such a cluster, whether its version is not newer, and whether the provider converts its
	// specification; it decides what the upgrade needs, finds the way to the cluster, and is the place for hooks before the workflow.
	PreUpgrade hook.Task[Managed, Reached] = "pre-upgrade"

	// UpgradeNetworking has the provider upgrade the network of the workload cluster. Undo: the provider's.
	UpgradeNetworking hook.Task[Reached, Reached] = "upgrade-networking"

	// UpgradeComponents has the provider upgrade what InstallComponents brought. Undo: the provider's.
	UpgradeComponents hook.Task[Reached, Reached] = "upgrade-components"

	// UpgradeCluster applies the provider's objects for the new version on the management cluster, and waits until all
	// machines have it, none is on its way out, and etcd is healthy with all its members. There is no way back. Where pre-upgrade has found
	// nothing to upgrade it only waits, and fails if the template has changed since.
	UpgradeCluster hook.Task[Reached, Reached] = "upgrade-cluster"

	// WriteClusterConfig writes the objects of the upgraded cluster, as they were applied, to params.writeConfig. Undo: what was there before
	// is restored.
	WriteClusterConfig hook.Task[Reached, Reached] = "write-cluster-config"

	// PostUpgrade does nothing: it is the place for hooks after the workflow. Controllers that the upgrade has paused stay paused until these
	// hooks have ended.
	PostUpgrade hook.Task[Reached, Reached] = "post-upgrade"
)

// The tasks of Delete.
const (
	// PreDelete does nothing: it is the place for hooks before the workflow.
	PreDelete hook.Task[Managed, Managed] = "pre-delete"

	// DeleteCluster deletes the cluster on the management cluster, and waits until it is gone with all its machines; then
	// what it was made from. There is no way back.
	DeleteCluster hook.Task[Managed, Managed] = "delete-cluster"

	// PostDelete does nothing: it is the place for hooks after the workflow.
	PostDelete hook.Task[Managed, Managed] = "post-delete"
)
