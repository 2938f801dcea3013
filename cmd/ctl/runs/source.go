package runs

import (
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/source"
)

// Source is where runs are read from: the newest of each name.
type Source = source.Source[*Run]

const noun = "run"

// InCluster reads the WorkflowRun resource. notice is told when a watch breaks and is taken up again; nil tells nobody.
func InCluster(c *reach.Cluster, notice func(error)) Source {
	return &source.Cluster[*v1alpha1.WorkflowRun, *Run]{
		Cluster: c, Noun: noun, Notice: notice,
		New:     func() *v1alpha1.WorkflowRun { return &v1alpha1.WorkflowRun{} },
		NewList: func() client.ObjectList { return &v1alpha1.WorkflowRunList{} },
		Of:      OfResource,
	}
}

// OfResource is the run that a WorkflowRun shows.
func OfResource(w *v1alpha1.WorkflowRun) *Run {
	return &Run{
		Namespace: w.Namespace, Name: w.Name, ID: w.Status.RunID, Status: w.Status, CreatedAt: w.CreationTimestamp.Time,
	}
}
