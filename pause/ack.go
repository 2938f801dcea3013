package pause

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Signal is how an object acknowledged a pause.
type Signal string

// The signals, strongest first.
const (
	// ByCondition means that the object's condition Paused became True after the pause was set.
	ByCondition Signal = "condition"
	// AlreadyPaused means that a user or another holder had paused the object before, and it is
	// still paused.
	AlreadyPaused Signal = "already-held"
	// Settled means that the condition Paused was already True for an unknown reason, and did not
	// change after a write that triggers the controller.
	Settled Signal = "settled"
	// ThroughOwner means that the controller ignores the object until the object has an owner,
	// which it cannot get while its Cluster is paused.
	ThroughOwner Signal = "through-owner"
	// Assumed means that no object of the kind has the condition (templates, Secrets, providers of older contracts).
	Assumed Signal = "assumed"
)

// SettleTime is how long a stale condition Paused must stay True after the pause. It is twice the
// rate limit of the slowest Cluster API controller (MachineHealthCheck: one reconcile in 15 s).
const SettleTime = 30 * time.Second

// Baseline is the state of an object just before the pause.
type Baseline struct {
	UID    types.UID              `json:"uid"`
	Paused object.ConditionStatus `json:"paused,omitempty"`
	// AlreadyPaused means that the object was already paused, by its own annotation or by its
	// Cluster.
	AlreadyPaused bool `json:"alreadyPaused,omitempty"`
}

// Context contains the input of EvaluateObject besides the object.
type Context struct {
	// KindReportsPaused means that an object of this kind has a condition Paused, now or in the baseline.
	KindReportsPaused bool
	// SincePause is the time since the pause was observed on every root.
	SincePause time.Duration
}

// Verdict is the result of EvaluateObject for one object.
type Verdict struct {
	Acknowledged bool
	How          Signal // if acknowledged
	Reason       string // what is missing, if not acknowledged
	Touch        bool   // a write to the metadata would wake the controller
}

// EvaluateObject returns whether an object has acknowledged the pause, and how or why not. before
// is zero if the object did not exist before the pause. docs/design/mover.md, "How an object
// acknowledges a pause", explains the rules. Their source is cluster-api issue 8473.
func EvaluateObject(before Baseline, now object.Observed, c Context) Verdict {
	if now.KindBlocksMove {
		return Verdict{Reason: "annotation " + object.BlockMoveAnnotation + " on its CustomResourceDefinition blocks all objects of the kind"}
	}
	if now.BlockMove {
		return Verdict{Reason: "its provider still blocks it with annotation " + object.BlockMoveAnnotation}
	}
	if before.UID != now.UID {
		before = Baseline{} // another object with the same name
	}
	if now.TopologyPaused != object.True && now.Cluster != nil && now.Cluster.ClassName != "" && now.TopologyPaused != object.Absent {
		return Verdict{Reason: "the topology controller has not reported TopologyReconciled=False, reason Paused", Touch: true}
	}
	if isUnpausedHost(now) {
		return Verdict{Reason: hostNotPaused}
	}
	switch {
	case now.Paused == object.True && before.Paused != object.True:
		return Verdict{Acknowledged: true, How: ByCondition}
	case now.Paused == object.True && before.AlreadyPaused:
		return Verdict{Acknowledged: true, How: AlreadyPaused}
	case now.Paused == object.True && c.SincePause >= SettleTime:
		return Verdict{Acknowledged: true, How: Settled}
	case now.Paused == object.True:
		return Verdict{
			Reason: "its condition Paused was True before the pause, for an unknown cause: scute waits for a while until it settles",
			Touch:  true,
		}
	case now.Paused != object.Absent:
		return Verdict{Reason: "condition Paused is " + string(now.Paused), Touch: true}
	case !c.KindReportsPaused:
		return Verdict{Acknowledged: true, How: Assumed}
	case lacksOwner(now):
		return Verdict{Acknowledged: true, How: ThroughOwner}
	default:
		return Verdict{Reason: "it has no condition Paused yet", Touch: true}
	}
}

// InvalidReason returns why an acknowledgement is no longer valid, or "" if it is valid. The
// condition Paused must still be True, or absent if the object acknowledged without it.
func InvalidReason(how Signal, now object.Observed) string {
	switch {
	case now.BlockMove:
		return "its provider blocks it again with annotation " + object.BlockMoveAnnotation
	case isUnpausedHost(now):
		return hostNotPaused
	case now.Paused == object.True, now.Paused == object.Absent && (how == ThroughOwner || how == Assumed):
		return ""
	case now.Paused == object.Absent:
		return "its condition Paused was removed"
	default:
		return "condition Paused is " + string(now.Paused)
	}
}

const hostNotPaused = "Metal3's provider has not set annotation " + object.HostPausedAnnotation + " on it"

// isUnpausedHost reports whether an object is a BareMetalHost that a Metal3Machine uses and that is
// not paused yet. A BareMetalHost has neither a condition Paused nor an owner. Metal3's provider
// sets an annotation on it instead, together with a copy of the host's status, which the target
// needs.
func isUnpausedHost(o object.Observed) bool {
	return o.Consumer != nil && o.Consumer.Kind == "Metal3Machine" && !o.HostPaused
}

// lacksOwner reports whether an object has no owner yet, and its controller ignores it until a
// Machine or MachinePool owns it. The object cannot get an owner while its Cluster is paused.
func lacksOwner(o object.Observed) bool {
	return o.Ref.Group != object.CoreGroup && o.ClusterName != "" &&
		!slices.ContainsFunc(o.Owners, func(owner object.Owner) bool { return owner.Ref.Group == object.CoreGroup })
}
