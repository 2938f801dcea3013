package stack

import (
	"context"

	bootstrapadmission "sigs.k8s.io/cluster-api/bootstrap/kubeadm/webhooks/admission"
	controlplaneadmission "sigs.k8s.io/cluster-api/controlplane/kubeadm/webhooks/admission"
	coreadmission "sigs.k8s.io/cluster-api/core/webhooks/admission"
	infrastructurewebhooks "sigs.k8s.io/cluster-api/test/infrastructure/docker/webhooks"
	ctrl "sigs.k8s.io/controller-runtime"
)

// setupWebhooks registers every admission webhook of the providers' manifests.
func setupWebhooks(_ context.Context, manager ctrl.Manager, d dependencies) error {
	c := manager.GetClient()
	for _, w := range []interface {
		SetupWebhookWithManager(ctrl.Manager) error
	}{
		&coreadmission.ClusterClass{Client: c},
		&coreadmission.Cluster{Client: c, ClusterCacheReader: d.clusters},
		&coreadmission.Machine{},
		&coreadmission.MachineSet{},
		&coreadmission.MachineDeployment{},
		&coreadmission.MachineDrainRule{},
		&coreadmission.MachinePool{},
		&coreadmission.ClusterResourceSet{},
		&coreadmission.ClusterResourceSetBinding{},
		&coreadmission.MachineHealthCheck{},
		&coreadmission.ExtensionConfig{},
		&coreadmission.IPAddress{Client: manager.GetAPIReader()},
		&coreadmission.IPAddressClaim{},
		&bootstrapadmission.KubeadmConfig{},
		&bootstrapadmission.KubeadmConfigTemplate{},
		&controlplaneadmission.KubeadmControlPlane{},
		&controlplaneadmission.ScaleValidator{Client: c},
		&controlplaneadmission.KubeadmControlPlaneTemplate{},
		&infrastructurewebhooks.DockerMachine{},
		&infrastructurewebhooks.DockerMachineTemplate{},
		&infrastructurewebhooks.DockerCluster{},
		&infrastructurewebhooks.DockerClusterTemplate{},
		&infrastructurewebhooks.DevMachine{},
		&infrastructurewebhooks.DevMachineTemplate{},
		&infrastructurewebhooks.DevCluster{},
		&infrastructurewebhooks.DevClusterTemplate{},
	} {
		if err := w.SetupWebhookWithManager(manager); err != nil {
			return err
		}
	}
	return nil
}
