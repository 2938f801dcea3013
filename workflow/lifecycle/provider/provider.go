package provider

import (
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/workflow/task/access"
)

// Cluster is a user's specification of a cluster.
type Cluster struct {
	// Namespace of the cluster's objects. Default: the run's.
	Namespace string `json:"namespace,omitempty"`
	Name      string `json:"name"`
	// Version of Kubernetes, for example v1.36.0. In an upgrade: the new version.
	Version string `json:"version,omitempty"`
	// ControlPlaneReplicas and WorkerReplicas default to 1 and 0. In an upgrade they default to the
	// cluster's current numbers. WorkerReplicas is then nil if the cluster's worker objects have
	// different numbers.
	ControlPlaneReplicas *int              `json:"controlPlaneReplicas,omitempty"`
	WorkerReplicas       *int              `json:"workerReplicas,omitempty"`
	Variables            map[string]string `json:"variables,omitempty"`
}

// Rules for all methods of the interfaces below: a method observes, does the missing work, waits
// until the result is in effect or the context ends, and returns. After a failure, or a crash at
// any point, it is called again. It records a change before it makes it (Context's Perform and
// Record). Its undo uses these records, keeps everything that existed before the run, and is called
// even if nothing was done yet.

// ComponentInstaller installs the provider's controllers on a bootstrap cluster, or on a management
// cluster that has none or some of them. It does not upgrade installed controllers.
type ComponentInstaller interface {
	InstallComponents(c *Context, on access.ClusterRef) error
	UninstallComponents(c *Context, on access.ClusterRef) error
}

// ComponentUpgrader upgrades the provider's controllers on a management cluster to the specified versions.
type ComponentUpgrader interface {
	UpgradeComponents(c *Context, on access.ClusterRef) error
	// RestoreComponents undoes the upgrade. It returns a task.Final error if that is impossible.
	RestoreComponents(c *Context, on access.ClusterRef) error
}

// NetworkInstaller installs the network of a new cluster, on which only the control plane runs. The
// workflow waits for the nodes.
type NetworkInstaller interface {
	InstallNetworking(c *Context, on access.ClusterRef) error
	UninstallNetworking(c *Context, on access.ClusterRef) error
}

// NetworkUpgrader upgrades the network of a running cluster to the specified version.
type NetworkUpgrader interface {
	UpgradeNetworking(c *Context, on access.ClusterRef) error
	// RestoreNetworking undoes the upgrade. It returns a task.Final error if that is impossible.
	RestoreNetworking(c *Context, on access.ClusterRef) error
}

// Converter converts a specification to Cluster API objects in the order of creation. The result
// depends only on the specification. The first object of kind Cluster represents the cluster.
// Objects without a namespace are created in that of the cluster.
type Converter interface {
	ClusterObjects(c *Context, cluster Cluster) ([]*unstructured.Unstructured, error)
}

// Upgrader converts the specification of a running cluster, which has the new version, to objects.
// These are applied over the existing objects. An object that cannot be changed in place, such as a
// machine template, needs a new name.
type Upgrader interface {
	UpgradeObjects(c *Context, cluster Cluster) ([]*unstructured.Unstructured, error)
}

// Component is a component that an upgrade changes. A version is "" if the component has none.
type Component struct {
	Name       string `json:"name"`
	OldVersion string `json:"oldVersion,omitempty"`
	NewVersion string `json:"newVersion,omitempty"`
}

// Comparer lists the components that an upgrade changes. Without it, no components are listed.
type Comparer interface {
	Differences(c *Context, on access.ClusterRef) ([]Component, error)
}

// Reader reads, before the first task, the files and the objects of the run's own cluster that
// other methods will read later. failed gets each unreadable parameter, such as
// "cluster.template.file".
type Reader interface {
	Read(c *Context, workflow string, failed func(parameter string, err error))
}

// Cleaner returns the objects of a cluster that are not deleted with its Cluster, such as machine
// templates. Without it, they are kept.
type Cleaner interface {
	RemainingObjects(c *Context, cluster Cluster) ([]*unstructured.Unstructured, error)
}

// Accessor returns the API server of a new cluster. Without it, the workflow uses the kubeconfig in
// the Secret NAME-kubeconfig, which Cluster API creates on the managing cluster.
type Accessor interface {
	// Access returns the reference to the API server. It is called when the control plane is
	// initialized. If ok is false, the workflow uses the Secret.
	Access(c *Context, manager access.ClusterRef, cluster Cluster) (ref access.ClusterRef, ok bool, err error)
}

// Access is the output of a step that creates a cluster: a reference to its API server. The log
// never contains the kubeconfig.
type Access struct {
	Cluster *access.ClusterRef `json:"cluster"`
	// Skipped is the reason why no cluster was created. Cluster then refers to an existing cluster.
	Skipped string `json:"skipped,omitempty"`
}

// Check returns an error if the reference is missing.
func (a Access) Check() error {
	if a.Cluster == nil {
		return errors.New(`it lacks "cluster", a reference such as {"cluster": {"kubeconfig": "FILE"}}`)
	}
	return nil
}
