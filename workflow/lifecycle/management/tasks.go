package management

import "scute.dev/workflow/lifecycle/hook"

// The tasks of Create.
const (
	// PreCreate does nothing: it is the place for hooks before the workflow.
	PreCreate hook.Task[Specified, Specified] = "pre-create"

	// CreateBootstrapCluster makes the temporary cluster, or takes up one that was named, and waits for its API server. It
	// installs nothing. Undo: it is deleted, if this run has made it.
	CreateBootstrapCluster hook.Task[Specified, Bootstrapped] = "create-bootstrap-cluster"

	// InstallBootstrapComponents has the provider bring Cluster API and its own components to the bootstrap cluster, and
	// waits until they work. It makes no cluster. Undo: what it installed is removed.
	InstallBootstrapComponents hook.Task[Bootstrapped, Bootstrapped] = "install-bootstrap-components"

	// CreateManagementCluster has the provider convert the specification, applies the objects on the bootstrap cluster,
	// waits until the control plane takes requests, and keeps the way there. Nodes need not be ready: there is no network
	// yet. Undo: the cluster is deleted and gone with all its machines.
	CreateManagementCluster hook.Task[Bootstrapped, Paired] = "create-management-cluster"

	// InstallNetworking has the provider bring the network, and waits until the cluster is available: all nodes ready.
	// Undo: the network is removed.
	InstallNetworking hook.Task[Paired, Paired] = "install-networking"

	// InstallManagementComponents is InstallBootstrapComponents on the management cluster.
	InstallManagementComponents hook.Task[Paired, Paired] = "install-management-components"

	// PivotToManagement moves the cluster's objects from the bootstrap cluster to the management cluster: a Move, with
	// acknowledged pauses and verification. It waits until the cluster is available there. Undo: they are moved back.
	PivotToManagement hook.Task[Paired, Paired] = "pivot-to-management"

	// InstallClusterConfiguration has the provider install the configuration that the user supplied. Undo: it is removed.
	InstallClusterConfiguration hook.Task[Paired, Paired] = "install-cluster-configuration"

	// DeleteBootstrapCluster deletes the bootstrap cluster, if this run has made it. It refuses while that
	// still manages the cluster. Undo: it is made again, with its components.
	DeleteBootstrapCluster hook.Task[Paired, Managed] = "delete-bootstrap-cluster"

	// PostCreate does nothing: it is the place for hooks after the workflow, among them the one that writes the
	// configuration that was applied.
	PostCreate hook.Task[Managed, Managed] = "post-create"
)

// The tasks of Upgrade and Delete by which the cluster comes to a bootstrap cluster. The first two are as in Create, with other
// contexts.
const (
	// AddBootstrapCluster is CreateBootstrapCluster beside a management cluster.
	AddBootstrapCluster hook.Task[Managed, Paired] = "create-bootstrap-cluster"

	// AddBootstrapComponents is InstallBootstrapComponents beside a management cluster.
	AddBootstrapComponents hook.Task[Paired, Paired] = "install-bootstrap-components"

	// PivotToBootstrap moves the cluster's objects to the bootstrap cluster, so that no machine is replaced by a
	// controller that runs on it. It waits until the cluster is available there. Undo: they are moved back.
	PivotToBootstrap hook.Task[Paired, Paired] = "pivot-to-bootstrap"
)

// The tasks of Upgrade, beside PivotToManagement and DeleteBootstrapCluster, which are those of Create.
const (
	// PreUpgrade looks whether there is such a cluster, whether its version is not newer, and whether the provider converts its
	// specification. It decides what the upgrade needs, which is its output. It is the place for hooks before the workflow.
	PreUpgrade hook.Task[Managed, Managed] = "pre-upgrade"

	// UpgradeManagementComponents has the provider upgrade Cluster API and its own components on the management cluster, and
	// waits until they work. It touches no machine. Undo: the provider's, where it has one.
	UpgradeManagementComponents hook.Task[Managed, Managed] = "upgrade-management-components"

	// UpgradeNetworking has the provider upgrade the network of the management cluster. Undo: the provider's.
	UpgradeNetworking hook.Task[Managed, Managed] = "upgrade-networking"

	// UpgradeInstallManagementComponents brings what the wanted version needs and the management cluster does not have yet.
	// It may find everything there. Undo: what it installed is removed.
	UpgradeInstallManagementComponents hook.Task[Managed, Managed] = "install-management-components"

	// UpgradeCluster applies the provider's objects for the new version on the bootstrap cluster, and waits until all
	// machines have it, none is on its way out, and etcd is healthy with all its members. There is no way back. Where pre-upgrade has found
	// nothing to upgrade it only waits, and fails if the template has changed since.
	UpgradeCluster hook.Task[Paired, Paired] = "upgrade-cluster"

	// WriteClusterConfig writes the objects of the upgraded cluster, as they were applied, to params.writeConfig. Undo: what was there before
	// is restored.
	WriteClusterConfig hook.Task[Managed, Managed] = "write-cluster-config"

	// PostUpgrade does nothing: it is the place for hooks after the workflow. Controllers that the upgrade has paused stay paused until these
	// hooks have ended.
	PostUpgrade hook.Task[Managed, Managed] = "post-upgrade"
)

// The tasks of Delete.
const (
	// PreDelete looks whether the management cluster has no other Clusters: their machines would be left without anything that manages
	// them. It is the place for hooks before the workflow.
	PreDelete hook.Task[Managed, Managed] = "pre-delete"

	// DeleteCluster looks again as PreDelete does, deletes the cluster on the bootstrap cluster, and waits until it is gone with all its
	// machines; then what it was made from. There is no way back.
	DeleteCluster hook.Task[Paired, Bootstrapped] = "delete-cluster"

	// DeleteLastBootstrapCluster is DeleteBootstrapCluster when the management cluster is gone.
	DeleteLastBootstrapCluster hook.Task[Bootstrapped, Specified] = "delete-bootstrap-cluster"

	// PostDelete does nothing: it is the place for hooks after the workflow.
	PostDelete hook.Task[Specified, Specified] = "post-delete"
)
