package remediations

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/reach"
	"scute.dev/cmd/ctl/source"
)

// Source is where remediations are read from, each by the name of its machine.
type Source = source.Source[*v1alpha1.SurgeRemediation]

const noun = "remediation"

// InCluster reads the resource. notice is told when a watch breaks and is taken up again; nil tells nobody.
func InCluster(c *reach.Cluster, notice func(error)) Source {
	return &source.Cluster[*v1alpha1.SurgeRemediation, *v1alpha1.SurgeRemediation]{
		Cluster: c, Noun: noun, Notice: notice,
		New:     func() *v1alpha1.SurgeRemediation { return &v1alpha1.SurgeRemediation{} },
		NewList: func() client.ObjectList { return &v1alpha1.SurgeRemediationList{} },
		Of:      func(r *v1alpha1.SurgeRemediation) *v1alpha1.SurgeRemediation { return r },
	}
}

// Over says that nothing more happens to the machine by itself.
func Over(r *v1alpha1.SurgeRemediation) bool {
	return slices.Contains([]v1alpha1.RemediationPhase{
		v1alpha1.RemediationSucceeded, v1alpha1.RemediationFailed, v1alpha1.RemediationCancelled,
		v1alpha1.RemediationRecovered, v1alpha1.RemediationUnselected,
	}, r.Status.Phase)
}

// Open says that scute looks after the machine: it may bear its marks.
func Open(r *v1alpha1.SurgeRemediation) bool {
	return r.Status.FinishedAt == nil && r.Status.Phase != v1alpha1.RemediationUnselected
}

// UnderWay says that its owner was asked for a replacement.
func UnderWay(p v1alpha1.RemediationPhase) bool {
	return slices.Contains([]v1alpha1.RemediationPhase{
		v1alpha1.RemediationSurging, v1alpha1.RemediationReplacing, v1alpha1.RemediationRemoving, v1alpha1.RemediationCancelling,
	}, p)
}

// Good says that the machine is healthy again, or was replaced.
func Good(p v1alpha1.RemediationPhase) bool {
	return p == v1alpha1.RemediationSucceeded || p == v1alpha1.RemediationRecovered
}
