package lifecycle

import (
	"encoding/json"
	"slices"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/diagnose"
)

// diagnoseInputs returns the inputs of a Diagnose of the cluster. When a task fails, the objects of the cluster may be on the management cluster, on the
// bootstrap cluster, or on the cluster itself.
func (c *checker) diagnoseInputs(tasks []v1alpha1.TaskSpec) json.RawMessage {
	spec := &c.params.Cluster
	with := diagnose.With{Namespace: spec.Namespace, Clusters: []string{spec.Name}}
	if c.params.Management != nil {
		with.Cluster = *c.params.Management
	}
	of := func(task, otherwise string) access.ClusterRef {
		return access.ClusterRef{Kubeconfig: "${tasks." + task + ".output.cluster.kubeconfig:-" + otherwise + "}"}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(tasks, func(t v1alpha1.TaskSpec) bool { return t.Name == name })
	}
	switch {
	case c.name == ManagementCreate: // the run's own cluster has none of the objects
		with.Cluster = of("create-bootstrap-cluster", "no bootstrap cluster")
		with.Others = []access.ClusterRef{of("create-management-cluster", "")}
	case has("create-bootstrap-cluster"):
		with.Others = []access.ClusterRef{of("create-bootstrap-cluster", "")}
	case c.name == WorkloadCreate:
		with.Others = []access.ClusterRef{of("create-workload-cluster", "")}
	case c.name == WorkloadUpgrade:
		with.Others = []access.ClusterRef{of("pre-upgrade", "")}
	}
	data, _ := json.Marshal(with) // strings can always be encoded
	return data
}
