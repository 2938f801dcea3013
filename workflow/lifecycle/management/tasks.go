package management

import "scute.dev/workflow/lifecycle/hook"

// The tasks of the create workflow.
const (
	// PreCreate does nothing. Bind hooks before the workflow to it.
	PreCreate hook.Task[Specified, Specified] = "pre-create"

	// CreateBootstrapCluster creates the temporary cluster or uses an existing one, and waits for
	// its API server. Undo: deletes the cluster if this run created it.
	CreateBootstrapCluster hook.Task[Specified, Bootstrapped] = "create-bootstrap-cluster"

	// InstallBootstrapComponents installs Cluster API and the provider's components on the
	// bootstrap cluster, and waits until they work. Undo: removes what it installed.
	InstallBootstrapComponents hook.Task[Bootstrapped, Bootstrapped] = "install-bootstrap-components"

	// CreateManagementCluster applies the provider's objects on the bootstrap cluster, waits until
	// the control plane (not the nodes, which lack a network) serves requests, and stores the
	// kubeconfig. Undo: deletes the cluster and waits until its machines are gone.
	CreateManagementCluster hook.Task[Bootstrapped, Paired] = "create-management-cluster"

	// InstallNetworking installs the network with the provider, and waits until the cluster is
	// available and all nodes are ready. Undo: removes the network.
	InstallNetworking hook.Task[Paired, Paired] = "install-networking"

	// InstallManagementComponents does the same as InstallBootstrapComponents, but on the management
	// cluster. Undo: removes what it installed.
	InstallManagementComponents hook.Task[Paired, Paired] = "install-management-components"

	// PivotToManagement moves the cluster's objects to the management cluster with a Move, and
	// waits until the cluster is available there. Undo: moves them back.
	PivotToManagement hook.Task[Paired, Paired] = "pivot-to-management"

	// InstallClusterConfiguration installs the user's configuration. Undo: removes it.
	InstallClusterConfiguration hook.Task[Paired, Paired] = "install-cluster-configuration"

	// DeleteBootstrapCluster deletes the bootstrap cluster if this run created it. It fails while
	// the bootstrap cluster still manages the cluster. Undo: creates it again, with its components.
	DeleteBootstrapCluster hook.Task[Paired, Managed] = "delete-bootstrap-cluster"

	// PostCreate does nothing. Bind hooks after the workflow to it; one writes the configuration.
	PostCreate hook.Task[Managed, Managed] = "post-create"
)

// The tasks of the upgrade and delete workflows that move the cluster to a bootstrap cluster. The
// first two have the names of tasks of the create workflow, but other contexts.
const (
	// AddBootstrapCluster does the same as CreateBootstrapCluster, but while a management cluster
	// exists.
	AddBootstrapCluster hook.Task[Managed, Paired] = "create-bootstrap-cluster"

	// AddBootstrapComponents does the same as InstallBootstrapComponents, but while a management
	// cluster exists.
	AddBootstrapComponents hook.Task[Paired, Paired] = "install-bootstrap-components"

	// PivotToBootstrap moves the cluster's objects to the bootstrap cluster, so that no controller
	// replaces the machine on which it runs. Undo: moves them back.
	PivotToBootstrap hook.Task[Paired, Paired] = "pivot-to-bootstrap"
)

// The tasks of the upgrade workflow, besides PivotToManagement and DeleteBootstrapCluster.
const (
	// PreUpgrade checks that the cluster exists and is not newer, and that the provider can convert
	// its specification. Its output is a provider.Decision. Bind hooks before the workflow to it.
	PreUpgrade hook.Task[Managed, Managed] = "pre-upgrade"

	// UpgradeManagementComponents upgrades Cluster API and the provider's components, and waits
	// until they work. It changes no machine. Undo: the provider's, if it has one.
	UpgradeManagementComponents hook.Task[Managed, Managed] = "upgrade-management-components"

	// UpgradeNetworking upgrades the management cluster's network. Undo: the provider's.
	UpgradeNetworking hook.Task[Managed, Managed] = "upgrade-networking"

	// UpgradeInstallManagementComponents installs components that only the new version needs. Undo:
	// removes what it installed.
	UpgradeInstallManagementComponents hook.Task[Managed, Managed] = "install-management-components"

	// UpgradeCluster applies the provider's objects for the new version on the bootstrap cluster.
	// It waits until all machines have this version, none is being deleted, and etcd is healthy. It
	// cannot be undone. If pre-upgrade found nothing to upgrade, it only waits.
	UpgradeCluster hook.Task[Paired, Paired] = "upgrade-cluster"

	// WriteClusterConfig writes the applied objects to params.writeConfig. Undo: restores the previous content.
	WriteClusterConfig hook.Task[Managed, Managed] = "write-cluster-config"

	// PostUpgrade does nothing. Bind hooks after the workflow to it. Paused controllers stay paused
	// until these hooks have ended.
	PostUpgrade hook.Task[Managed, Managed] = "post-upgrade"
)

// The tasks of the delete workflow.
const (
	// PreDelete fails if there are other Clusters, because nothing would manage their machines any
	// more. Bind hooks before the workflow to it.
	PreDelete hook.Task[Managed, Managed] = "pre-delete"

	// DeleteCluster repeats the check of PreDelete and deletes the cluster on the bootstrap
	// cluster. When all machines are gone, it deletes the objects from which the cluster was
	// created. It cannot be undone.
	DeleteCluster hook.Task[Paired, Bootstrapped] = "delete-cluster"

	// DeleteLastBootstrapCluster does the same as DeleteBootstrapCluster, but after the management
	// cluster is gone.
	DeleteLastBootstrapCluster hook.Task[Bootstrapped, Specified] = "delete-bootstrap-cluster"

	// PostDelete does nothing. Bind hooks after the workflow to it.
	PostDelete hook.Task[Specified, Specified] = "post-delete"
)
