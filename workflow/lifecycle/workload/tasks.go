package workload

import "scute.dev/workflow/lifecycle/hook"

// The tasks of the create workflow.
const (
	// PreCreate does nothing. Bind hooks before the workflow to it.
	PreCreate hook.Task[Managed, Managed] = "pre-create"

	// CreateWorkloadCluster applies the provider's objects on the management cluster, waits until
	// the control plane (not the nodes, which lack a network) serves requests, and stores the
	// kubeconfig. Undo: deletes the cluster and waits until its machines are gone.
	CreateWorkloadCluster hook.Task[Managed, Connected] = "create-workload-cluster"

	// InstallNetworking installs the network with the provider, and waits until the cluster is
	// available and all nodes are ready. Undo: removes the network.
	InstallNetworking hook.Task[Connected, Connected] = "install-networking"

	// InstallComponents installs the components that every workload cluster needs, for example
	// objects that identify it later. Undo: removes what it installed.
	InstallComponents hook.Task[Connected, Connected] = "install-components"

	// PostCreate does nothing. Bind hooks after the workflow to it; one writes the configuration.
	PostCreate hook.Task[Connected, Connected] = "post-create"
)

// The tasks of the upgrade workflow.
const (
	// PreUpgrade checks that the cluster exists and is not newer, and that the provider can convert
	// its specification. It decides what changes, and connects to the cluster. Bind hooks before
	// the workflow to it.
	PreUpgrade hook.Task[Managed, Connected] = "pre-upgrade"

	// UpgradeNetworking upgrades the workload cluster's network. Undo: the provider's.
	UpgradeNetworking hook.Task[Connected, Connected] = "upgrade-networking"

	// UpgradeComponents upgrades what InstallComponents installed. Undo: the provider's.
	UpgradeComponents hook.Task[Connected, Connected] = "upgrade-components"

	// UpgradeCluster applies the provider's objects for the new version on the management cluster.
	// It waits until all machines have this version, none is being deleted, and etcd is healthy. It
	// cannot be undone. If pre-upgrade found nothing to upgrade, it only waits.
	UpgradeCluster hook.Task[Connected, Connected] = "upgrade-cluster"

	// WriteClusterConfig writes the applied objects to params.writeConfig. Undo: restores the previous content.
	WriteClusterConfig hook.Task[Connected, Connected] = "write-cluster-config"

	// PostUpgrade does nothing. Bind hooks after the workflow to it. Paused controllers stay paused
	// until these hooks have ended.
	PostUpgrade hook.Task[Connected, Connected] = "post-upgrade"
)

// The tasks of the delete workflow.
const (
	// PreDelete does nothing. Bind hooks before the workflow to it.
	PreDelete hook.Task[Managed, Managed] = "pre-delete"

	// DeleteCluster deletes the cluster. When all machines are gone, it deletes the objects from
	// which the cluster was created. It cannot be undone.
	DeleteCluster hook.Task[Managed, Managed] = "delete-cluster"

	// PostDelete does nothing. Bind hooks after the workflow to it.
	PostDelete hook.Task[Managed, Managed] = "post-delete"
)
