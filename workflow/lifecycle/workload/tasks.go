package workload

import "scute.dev/workflow/lifecycle/hook"

// The tasks of the create workflow.
const (
	// PreCreate does nothing. Bind hooks before the workflow to it.
	PreCreate hook.Task[Managed, Managed] = "pre-create"

	// CreateWorkloadCluster applies the provider's objects on the management cluster, waits until
	// the control plane serves requests, and stores the kubeconfig. Nodes need not be ready,
	// because the network is missing. Undo: deletes the cluster and waits until all its machines
	// are gone.
	CreateWorkloadCluster hook.Task[Managed, Connected] = "create-workload-cluster"

	// InstallNetworking installs the network with the provider, and waits until the cluster is
	// available and all nodes are ready. Undo: removes the network.
	InstallNetworking hook.Task[Connected, Connected] = "install-networking"

	// InstallComponents installs with the provider the components that every workload cluster
	// needs, for example objects that identify it later. Undo: removes what it installed.
	InstallComponents hook.Task[Connected, Connected] = "install-components"

	// PostCreate does nothing. Bind hooks after the workflow to it. One hook writes the applied
	// configuration.
	PostCreate hook.Task[Connected, Connected] = "post-create"
)

// The tasks of the upgrade workflow.
const (
	// PreUpgrade checks that the cluster exists, that its version is not newer, and that the
	// provider converts its specification. It decides what the upgrade changes, and connects to the
	// cluster. Bind hooks before the workflow to it.
	PreUpgrade hook.Task[Managed, Connected] = "pre-upgrade"

	// UpgradeNetworking upgrades the network of the workload cluster with the provider. Undo: the
	// provider's.
	UpgradeNetworking hook.Task[Connected, Connected] = "upgrade-networking"

	// UpgradeComponents upgrades with the provider what InstallComponents installed. Undo: the
	// provider's.
	UpgradeComponents hook.Task[Connected, Connected] = "upgrade-components"

	// UpgradeCluster applies the provider's objects for the new version on the management cluster.
	// It waits until all machines have this version, none is being deleted, and etcd is healthy
	// with all its members. It cannot be undone. If pre-upgrade found nothing to upgrade, it only
	// waits, and fails if the template has changed since.
	UpgradeCluster hook.Task[Connected, Connected] = "upgrade-cluster"

	// WriteClusterConfig writes the applied objects of the upgraded cluster to params.writeConfig.
	// Undo: restores the previous content.
	WriteClusterConfig hook.Task[Connected, Connected] = "write-cluster-config"

	// PostUpgrade does nothing. Bind hooks after the workflow to it. Controllers that the upgrade
	// paused stay paused until these hooks have ended.
	PostUpgrade hook.Task[Connected, Connected] = "post-upgrade"
)

// The tasks of the delete workflow.
const (
	// PreDelete does nothing. Bind hooks before the workflow to it.
	PreDelete hook.Task[Managed, Managed] = "pre-delete"

	// DeleteCluster deletes the cluster on the management cluster, waits until all its machines are
	// gone, and then deletes the objects from which it was created. It cannot be undone.
	DeleteCluster hook.Task[Managed, Managed] = "delete-cluster"

	// PostDelete does nothing. Bind hooks after the workflow to it.
	PostDelete hook.Task[Managed, Managed] = "post-delete"
)
