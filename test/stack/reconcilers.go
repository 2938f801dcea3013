package stack

import (
	"context"
	"time"

	"go.uber.org/zap"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	kubeadmconfig "sigs.k8s.io/cluster-api/bootstrap/kubeadm/reconcilers/kubeadmconfig"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/pkg/etcd"
	"sigs.k8s.io/cluster-api/controlplane/kubeadm/reconcilers/kubeadmcontrolplane"
	"sigs.k8s.io/cluster-api/core/reconcilers/cluster"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterclass"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourceset"
	"sigs.k8s.io/cluster-api/core/reconcilers/clusterresourcesetbinding"
	"sigs.k8s.io/cluster-api/core/reconcilers/machine"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinedeployment"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinehealthcheck"
	"sigs.k8s.io/cluster-api/core/reconcilers/machinepool"
	"sigs.k8s.io/cluster-api/core/reconcilers/machineset"
	topologycluster "sigs.k8s.io/cluster-api/core/reconcilers/topology/cluster"
	topologymachinedeployment "sigs.k8s.io/cluster-api/core/reconcilers/topology/machinedeployment"
	topologymachineset "sigs.k8s.io/cluster-api/core/reconcilers/topology/machineset"
	"sigs.k8s.io/cluster-api/test/infrastructure/container"
	infrastructure "sigs.k8s.io/cluster-api/test/infrastructure/docker/controllers"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/controller"
)

// The defaults of the providers' flags.
const (
	remoteConnectionGracePeriod = 50 * time.Second
	remoteConditionsGracePeriod = 5 * time.Minute
	etcdDialTimeout             = 10 * time.Second
	tokenTTL                    = 15 * time.Minute
)

// setupable is a reconciler with the usual setup.
type setupable interface {
	SetupWithManager(context.Context, ctrl.Manager, controller.Options) error
}

func setupAll(ctx context.Context, manager ctrl.Manager, reconcilers ...setupable) error {
	for _, r := range reconcilers {
		if err := r.SetupWithManager(ctx, manager, workers); err != nil {
			return err
		}
	}
	return nil
}

func setupCore(ctx context.Context, manager ctrl.Manager, d dependencies) error {
	c, api := manager.GetClient(), manager.GetAPIReader()
	err := setupAll(ctx, manager,
		&clusterclass.Reconciler{Client: c},
		&topologycluster.Reconciler{Client: c, APIReader: api, ClusterCache: d.clusters},
		&topologymachinedeployment.Reconciler{Client: c, APIReader: api},
		&topologymachineset.Reconciler{Client: c, APIReader: api},
		&cluster.Reconciler{
			Client: c, APIReader: api, ClusterCache: d.clusters, RemoteConnectionGracePeriod: remoteConnectionGracePeriod,
		},
		&machine.Reconciler{
			Client: c, APIReader: api, ClusterCache: d.clusters, RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
		},
		&machineset.Reconciler{Client: c, APIReader: api, ClusterCache: d.clusters, PreflightChecks: sets.New(clusterv1.MachineSetPreflightCheckAll)},
		&machinedeployment.Reconciler{Client: c, APIReader: api},
		&machinepool.Reconciler{Client: c, APIReader: api, ClusterCache: d.clusters},
		&clusterresourcesetbinding.Reconciler{Client: c},
		&machinehealthcheck.Reconciler{Client: c, ClusterCache: d.clusters},
	)
	if err != nil {
		return err
	}
	// ClusterResourceSets refer to Secrets with any label, which the manager's own cache does not contain.
	secretNames, err := cache.New(manager.GetConfig(), cache.Options{
		Scheme: manager.GetScheme(), Mapper: manager.GetRESTMapper(), HTTPClient: manager.GetHTTPClient(),
		DefaultTransform: cache.TransformStripManagedFields(),
	})
	if err != nil {
		return err
	}
	if err := manager.Add(secretNames); err != nil {
		return err
	}
	return (&clusterresourceset.Reconciler{Client: c, ClusterCache: d.clusters}).SetupWithManager(ctx, manager, workers, secretNames)
}

func setupBootstrap(ctx context.Context, manager ctrl.Manager, d dependencies) error {
	return setupAll(ctx, manager, &kubeadmconfig.Reconciler{
		Client: manager.GetClient(), SecretCachingClient: d.secrets, APIReader: manager.GetAPIReader(), ClusterCache: d.clusters,
		TokenTTL: tokenTTL,
	})
}

func setupControlPlane(ctx context.Context, manager ctrl.Manager, d dependencies) error {
	return setupAll(ctx, manager, &kubeadmcontrolplane.Reconciler{
		Client: manager.GetClient(), APIReader: manager.GetAPIReader(), SecretCachingClient: d.secrets, ClusterCache: d.clusters,
		EtcdDialTimeout: etcdDialTimeout, EtcdCallTimeout: etcd.DefaultCallTimeout, EtcdLogger: zap.NewNop(),
		RemoteConditionsGracePeriod: remoteConditionsGracePeriod,
	})
}

func setupInfrastructure(ctx context.Context, manager ctrl.Manager, d dependencies) error {
	// Only the in-memory backend is used, but the Docker backend must not be nil.
	docker, err := container.NewFakeClient()
	if err != nil {
		return err
	}
	c, backend := manager.GetClient(), d.cloud.As(d.name)
	return setupAll(ctx, manager,
		&infrastructure.DevClusterReconciler{
			Client: c, ContainerRuntime: docker, InMemoryManager: backend, APIServerMux: d.cloud.Mux(),
		},
		&infrastructure.DevMachineReconciler{
			Client: c, ContainerRuntime: docker, ClusterCache: d.clusters, InMemoryManager: backend, APIServerMux: d.cloud.Mux(),
		},
		&infrastructure.DevMachineTemplateReconciler{Client: c, ContainerRuntime: docker},
	)
}
