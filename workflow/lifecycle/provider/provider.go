package provider

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
)

// Cluster is the specification of a cluster as a user gives it.
type Cluster struct {
	// Namespace of the cluster's objects. Default: the run's.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Version of Kubernetes, for example v1.36.0. In an upgrade: the one to come.
	Version string `json:"version,omitempty"`
	// ControlPlaneReplicas and WorkerReplicas are numbers of machines. Default: 1 and 0; in an upgrade those of the cluster, and nil
	// where it has not one number for all its worker objects.
	ControlPlaneReplicas *int `json:"controlPlaneReplicas,omitempty"`
	WorkerReplicas       *int `json:"workerReplicas,omitempty"`
	// Variables are for the provider's own use.
	Variables map[string]string `json:"variables,omitempty"`
}

// Every method of the interfaces below is called with the context of one attempt. It observes, does what is missing, waits
// until that has taken hold or the context ends, and returns. It is called again after a failure and after a death at any
// instant, and then finds its own half-done work. What it is going to change it records before it does (sequence.Context's
// Perform and Note), which is what its inverse goes by. The inverse leaves alone what was there before the run; it is also
// called when nothing was done yet.

// ComponentInstaller brings the provider's controllers to a cluster: a bootstrap cluster, or a management cluster that has
// none of them, or has some. It is not called to change a version that is there.
type ComponentInstaller interface {
	InstallComponents(c *sequence.Context, on access.ClusterRef) error
	UninstallComponents(c *sequence.Context, on access.ClusterRef) error
}

// ComponentUpgrader brings the provider's controllers on a management cluster to the versions that are wanted.
type ComponentUpgrader interface {
	UpgradeComponents(c *sequence.Context, on access.ClusterRef) error
	// RestoreComponents is the inverse; where there is no way back it says so with task.Final.
	RestoreComponents(c *sequence.Context, on access.ClusterRef) error
}

// NetworkInstaller brings the network of a new cluster, on which nothing but its control plane runs yet. It does not wait
// for nodes: the workflow does.
type NetworkInstaller interface {
	InstallNetworking(c *sequence.Context, on access.ClusterRef) error
	UninstallNetworking(c *sequence.Context, on access.ClusterRef) error
}

// NetworkUpgrader brings the network of a running cluster to the version that is wanted.
type NetworkUpgrader interface {
	UpgradeNetworking(c *sequence.Context, on access.ClusterRef) error
	// RestoreNetworking is the inverse; where there is no way back it says so with task.Final.
	RestoreNetworking(c *sequence.Context, on access.ClusterRef) error
}

// Converter turns the specification of a cluster into the objects of Cluster API that make it. It changes nothing. The same
// specification gives the same objects, in the order in which they must be created; the first Cluster among them is the
// cluster. Objects without a namespace get the cluster's.
type Converter interface {
	ClusterObjects(c *sequence.Context, cluster Cluster) ([]*unstructured.Unstructured, error)
}

// Upgrader turns the specification of a running cluster, with the version to come, into the objects that lead there. They
// are applied over what is there: what cannot be changed in place (a template of machines) comes under a new name.
type Upgrader interface {
	UpgradeObjects(c *sequence.Context, cluster Cluster) ([]*unstructured.Unstructured, error)
}

// Component is a part of a cluster that an upgrade changes. One that has no version has none here.
type Component struct {
	Name       string `json:"name"`
	OldVersion string `json:"oldVersion,omitempty"`
	NewVersion string `json:"newVersion,omitempty"`
}

// Comparer says which of its components on a cluster an upgrade changes. A provider without it has none named.
type Comparer interface {
	Differences(c *sequence.Context, on access.ClusterRef) ([]Component, error)
}

// Reader reads, before the first task of a workflow, what its methods are going to read later: files, and objects of the run's own cluster. It
// calls failed with each parameter that it cannot read, as "cluster.template.file" for example.
type Reader interface {
	Read(c *sequence.Context, workflow string, failed func(parameter string, err error))
}

// ConfigWriter writes the configuration of an upgraded cluster, as it was applied, to the place that the user has named. It is not a provider.
type ConfigWriter interface {
	WriteConfig(c *sequence.Context, manager access.ClusterRef, cluster Cluster) error
	// RestoreConfig is the inverse.
	RestoreConfig(c *sequence.Context) error
}

// Cleaner names the objects of a cluster that are not deleted with its Cluster, such as templates of machines. A provider
// without it has them stay.
type Cleaner interface {
	LeftObjects(c *sequence.Context, cluster Cluster) ([]*unstructured.Unstructured, error)
}

// Accessor tells where the API server of a cluster that was just made is reached. A provider without it has the workflow
// take Cluster API's own kubeconfig, the Secret NAME-kubeconfig on the cluster that manages it.
type Accessor interface {
	// Access is called when the control plane is initialized. ok is false if the Secret is right.
	Access(c *sequence.Context, manager access.ClusterRef, cluster Cluster) (ref access.ClusterRef, ok bool, err error)
}

// Access is the output of a step that makes a cluster: where its API server is reached. It is a reference; what it refers
// to is never in the log.
type Access struct {
	Cluster *access.ClusterRef `json:"cluster"`
	// Skipped says why no cluster was made, and Cluster is one that was there.
	Skipped string `json:"skipped,omitempty"`
}

// Check says what is missing in it.
func (a Access) Check() error {
	if a.Cluster == nil {
		return errors.New(`it lacks "cluster", a reference such as {"cluster": {"kubeconfig": "FILE"}}`)
	}
	return nil
}
