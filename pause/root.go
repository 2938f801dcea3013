package pause

import (
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Root is an object that can be paused, with its pause state from before the pause.
type Root struct {
	Ref object.Ref `json:"ref"`
	UID types.UID  `json:"uid"`
	// Found is the earlier spec.paused of a Cluster, or whether another root had the paused annotation.
	Found bool `json:"found,omitempty"`
}

// IsCluster reports whether the reference is to a Cluster API Cluster.
func IsCluster(r object.Ref) bool { return r.Group == object.CoreGroup && r.Kind == "Cluster" }

// IsRoot reports whether objects of this kind are paused: Clusters by a field, ClusterClasses and
// ClusterResourceSets by an annotation, because they do not follow the pause of a Cluster.
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

// RootOf returns a root with its current pause state.
func RootOf(o object.Observed) Root {
	found := o.PausedByUser
	if o.Cluster != nil {
		found = o.Cluster.Paused
	}
	return Root{Ref: o.Ref, UID: o.UID, Found: found}
}
