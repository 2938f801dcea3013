package pause

import (
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Root is an object that can be paused, with the pause state that it had before scute paused it.
type Root struct {
	Ref object.Ref `json:"ref"`
	UID types.UID  `json:"uid"`
	// Found reports whether the root was paused before: by spec.paused for a Cluster, by the paused
	// annotation for any other root.
	Found bool `json:"found,omitempty"`
}

// IsCluster reports whether the reference is to a Cluster API Cluster.
func IsCluster(r object.Ref) bool { return r.Group == object.CoreGroup && r.Kind == "Cluster" }

// IsRoot reports whether scute pauses objects of this kind: Clusters by a field, and ClusterClasses
// and ClusterResourceSets by an annotation, because the pause of a Cluster does not apply to them.
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
