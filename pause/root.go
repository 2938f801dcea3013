package pause

import (
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Root is an object that a pause is set on, with the pause state found there before.
type Root struct {
	Ref object.Ref `json:"ref"`
	UID types.UID  `json:"uid"`
	// Found is the pause state before ours: a Cluster's spec.paused, another root's paused annotation.
	Found bool `json:"found,omitempty"`
}

// IsCluster says whether the reference is to a Cluster API Cluster.
func IsCluster(r object.Ref) bool { return r.Group == object.CoreGroup && r.Kind == "Cluster" }

// IsRoot says whether a pause is set on objects of this kind: Clusters by field, ClusterClasses and
// ClusterResourceSets, which no Cluster's pause reaches, by annotation.
func IsRoot(r object.Ref) bool {
	switch {
	case r.Group == object.CoreGroup:
		return r.Kind == "Cluster" || r.Kind == "ClusterClass"
	case r.Group == object.AddonsGroup:
		return r.Kind == "ClusterResourceSet"
	default:
		return false
	}
}

// RootOf takes the pause state found on a root object.
func RootOf(o object.Observed) Root {
	found := o.PausedByUser
	if o.Cluster != nil {
		found = o.Cluster.Paused
	}
	return Root{Ref: o.Ref, UID: o.UID, Found: found}
}
