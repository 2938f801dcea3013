package management

import "scute.dev/workflow/lifecycle/hook"

// The tasks of Create.
const (
	// PreCreate does nothing: it is the place for hooks before the workflow.
	PreCreate hook.Task[CreateContext, CreateContext] = "pre-create"

	// CreateBootstrapCluster makes the temporary cluster, or takes up one that was named, and waits for its API server. It
	// installs nothing. Undo: it is deleted, if this run has made it.
	CreateBootstrapCluster hook.Task[CreateContext, CreateBootstrapped] = "create-bootstrap-cluster"

	// InstallBootstrapComponents has the provider bring Cluster API and its own components to the bootstrap cluster, and
	// waits until they work. It makes no cluster. Undo: what it installed is removed.
	InstallBootstrapComponents hook.Task[CreateBootstrapped, CreateBootstrapped] = "install-bootstrap-components"

	// CreateManagementCluster has the provider convert the specification, applies the objects on the bootstrap cluster,
	// waits until the control plane takes requests, and keeps the way there. Nodes need not be ready: there is no network
	// yet. Undo: the cluster is deleted and gone with all its machines.
	CreateManagementCluster hook.Task[CreateBootstrapped, CreateManaged] = "create-management-cluster"

	// InstallNetworking has the provider bring the network, and waits until the cluster is available: all nodes ready.
	// Undo: the network is removed.
	InstallNetworking hook.Task[CreateManaged, CreateManaged] = "install-networking"

	// InstallManagementComponents is InstallBootstrapComponents on the management cluster.
	InstallManagementComponents hook.Task[CreateManaged, CreateManaged] = "install-management-components"

	// PivotToManagement moves the cluster's objects from the bootstrap cluster to the management cluster: a Move, with
	// acknowledged pauses and verification. It waits until the cluster is available there. Undo: they are moved back.
	PivotToManagement hook.Task[CreateManaged, CreateManaged] = "pivot-to-management"

	// InstallClusterConfiguration has the provider install the configuration that the user supplied. Undo: it is removed.
	InstallClusterConfiguration hook.Task[CreateManaged, CreateManaged] = "install-cluster-configuration"

	// DeleteBootstrapCluster deletes the bootstrap cluster, if this run has made it. It refuses while that
	// still manages the cluster. Undo: it is made again, with its components.
	DeleteBootstrapCluster hook.Task[CreateManaged, CreateDone] = "delete-bootstrap-cluster"

	// PostCreate does nothing: it is the place for hooks after the workflow, among them the one that writes the
	// configuration that was applied.
	PostCreate hook.Task[CreateDone, CreateDone] = "post-create"
)

// The tasks of Upgrade. Those that Create has too bear the word Upgrade: their contexts are others.
const (
	// PreUpgrade looks whether there is such a cluster, and is the place for hooks before the workflow.
	PreUpgrade hook.Task[UpgradeContext, UpgradeContext] = "pre-upgrade"

	// UpgradeManagementComponents has the provider upgrade Cluster API and its own components on the management cluster, and
	// waits until they work. It touches no machine. Undo: the provider's, where it has one.
	UpgradeManagementComponents hook.Task[UpgradeContext, UpgradeContext] = "upgrade-management-components"

	// UpgradeNetworking has the provider upgrade the network of the management cluster. Undo: the provider's.
	UpgradeNetworking hook.Task[UpgradeContext, UpgradeContext] = "upgrade-networking"

	// UpgradeInstallManagementComponents brings what the wanted version needs and the management cluster does not have yet.
	// It may find everything there. Undo: what it installed is removed.
	UpgradeInstallManagementComponents hook.Task[UpgradeContext, UpgradeContext] = "install-management-components"

	// UpgradeCreateBootstrapCluster is as in Create.
	UpgradeCreateBootstrapCluster hook.Task[UpgradeContext, UpgradeBootstrapped] = "create-bootstrap-cluster"

	// UpgradeInstallBootstrapComponents is as in Create.
	UpgradeInstallBootstrapComponents hook.Task[UpgradeBootstrapped, UpgradeBootstrapped] = "install-bootstrap-components"

	// UpgradePivotToBootstrap moves the cluster's objects to the bootstrap cluster, so that no machine is replaced by a
	// controller that runs on it. It waits until the cluster is available there. Undo: they are moved back.
	UpgradePivotToBootstrap hook.Task[UpgradeBootstrapped, UpgradeBootstrapped] = "pivot-to-bootstrap"

	// UpgradeCluster applies the provider's objects for the new version on the bootstrap cluster, and waits until all
	// machines have it, none is on its way out, and etcd is healthy with all its members. There is no way back.
	UpgradeCluster hook.Task[UpgradeBootstrapped, UpgradeBootstrapped] = "upgrade-cluster"

	// UpgradePivotToManagement moves the cluster's objects back. Undo: to the bootstrap cluster again.
	UpgradePivotToManagement hook.Task[UpgradeBootstrapped, UpgradeBootstrapped] = "pivot-to-management"

	// UpgradeDeleteBootstrapCluster is as in Create.
	UpgradeDeleteBootstrapCluster hook.Task[UpgradeBootstrapped, UpgradeContext] = "delete-bootstrap-cluster"

	// PostUpgrade does nothing: it is the place for hooks after the workflow, among them the one that writes the
	// configuration that was applied.
	PostUpgrade hook.Task[UpgradeContext, UpgradeContext] = "post-upgrade"
)

// The tasks of Delete.
const (
	// PreDelete does nothing: it is the place for hooks before the workflow.
	PreDelete hook.Task[DeleteContext, DeleteContext] = "pre-delete"

	// DeleteCreateBootstrapCluster is as in Create.
	DeleteCreateBootstrapCluster hook.Task[DeleteContext, DeleteBootstrapped] = "create-bootstrap-cluster"

	// DeleteInstallBootstrapComponents is as in Create.
	DeleteInstallBootstrapComponents hook.Task[DeleteBootstrapped, DeleteBootstrapped] = "install-bootstrap-components"

	// DeletePivotToBootstrap is as in Upgrade.
	DeletePivotToBootstrap hook.Task[DeleteBootstrapped, DeleteBootstrapped] = "pivot-to-bootstrap"

	// DeleteCluster deletes the cluster on the bootstrap cluster, and waits until it is gone with all its machines; then
	// what it was made from. There is no way back.
	DeleteCluster hook.Task[DeleteBootstrapped, DeleteRemnant] = "delete-cluster"

	// DeleteDeleteBootstrapCluster is as in Create.
	DeleteDeleteBootstrapCluster hook.Task[DeleteRemnant, DeleteDone] = "delete-bootstrap-cluster"

	// PostDelete does nothing: it is the place for hooks after the workflow.
	PostDelete hook.Task[DeleteDone, DeleteDone] = "post-delete"
)
