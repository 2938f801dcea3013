package pause

import (
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Signal says how an object acknowledged a pause.
type Signal string

// The signals, strongest first.
const (
	// ByCondition: the object's Paused condition turned True after the pause was set.
	ByCondition Signal = "condition"
	// AlreadyHeld: it was paused before, for a cause of the user's that still holds.
	AlreadyHeld Signal = "already-held"
	// Settled: its condition was True before the pause without a known cause, it was touched, and it did not change.
	Settled Signal = "settled"
	// ThroughOwner: no controller has taken it up yet, because its owner, which would hand it over, is paused.
	ThroughOwner Signal = "through-owner"
	// Assumed: nothing of its kind gives a signal (templates, Secrets, providers of older contracts).
	Assumed Signal = "assumed"
)

// SettleTime is how long an object with a stale Paused condition must keep still after a touch. It is twice the rate
// limit of the slowest Cluster API controller (MachineHealthCheck: one reconcile in 15 s).
const SettleTime = 30 * time.Second

// Baseline is what an object said just before the pause.
type Baseline struct {
	UID    types.UID    `json:"uid"`
	Paused object.Truth `json:"paused,omitempty"`
	// Held: a user's own pause was in force on it, by its annotation or its cluster's.
	Held bool `json:"held,omitempty"`
}

// Context is what Judge must know beyond the object itself.
type Context struct {
	// KindSpeaks: some object of this kind has a Paused condition, now or at the baseline.
	KindSpeaks bool
	// SincePause is the time since the pause was observed on every root.
	SincePause time.Duration
}

// Verdict is the answer for one object at one moment.
type Verdict struct {
	Acknowledged bool
	How          Signal // when acknowledged
	Why          string // when not: what is missing
	Touch        bool   // a metadata write would wake its controller
}

// Judge says whether an object is at rest. before is its baseline; the zero value when it was not there.
// The rules are those of docs/design/mover.md, "How an object acknowledges a pause", from cluster-api issue 8473.
func Judge(before Baseline, now object.Observed, c Context) Verdict {
	if now.KindBlocksMove {
		return Verdict{Why: "annotation " + object.BlockMoveAnnotation + " on its CustomResourceDefinition holds all objects of the kind"}
	}
	if now.BlockMove {
		return Verdict{Why: "its provider still holds it with annotation " + object.BlockMoveAnnotation}
	}
	if before.UID != now.UID {
		before = Baseline{} // another object of the same name
	}
	if now.TopologyPaused != object.True && now.Cluster != nil && now.Cluster.ClassName != "" && now.TopologyPaused != object.Absent {
		return Verdict{Why: "the topology controller has not said TopologyReconciled=False, reason Paused", Touch: true}
	}
	if unnoted(now) {
		return Verdict{Why: noHostPaused}
	}
	switch {
	case now.Paused == object.True && before.Paused != object.True:
		return Verdict{Acknowledged: true, How: ByCondition}
	case now.Paused == object.True && before.Held:
		return Verdict{Acknowledged: true, How: AlreadyHeld}
	case now.Paused == object.True && c.SincePause >= SettleTime:
		return Verdict{Acknowledged: true, How: Settled}
	case now.Paused == object.True:
		return Verdict{Why: "its condition Paused was True before the pause for no known cause: it must keep still for a while", Touch: true}
	case now.Paused != object.Absent:
		return Verdict{Why: "condition Paused is " + string(now.Paused), Touch: true}
	case !c.KindSpeaks:
		return Verdict{Acknowledged: true, How: Assumed}
	case inert(now):
		return Verdict{Acknowledged: true, How: ThroughOwner}
	default:
		return Verdict{Why: "it has no condition Paused yet", Touch: true}
	}
}

// Broken says why an acknowledgement that was given no longer holds; "" when it does. An object that had a condition to
// show must still show it; of the others nothing may contradict it.
func Broken(how Signal, now object.Observed) string {
	switch {
	case now.BlockMove:
		return "its provider holds it again with annotation " + object.BlockMoveAnnotation
	case unnoted(now):
		return noHostPaused
	case now.Paused == object.True, now.Paused == object.Absent && (how == ThroughOwner || how == Assumed):
		return ""
	case now.Paused == object.Absent:
		return "its condition Paused is gone"
	default:
		return "condition Paused is " + string(now.Paused)
	}
}

const noHostPaused = "Metal3's provider has not set annotation " + object.HostPausedAnnotation + " on it"

// unnoted: a BareMetalHost that a Metal3Machine uses has no condition Paused. Its signal is the annotation that the
// provider sets on it; the host's status is copied with it, and would be missing on the target. Nothing owns the host.
func unnoted(o object.Observed) bool {
	return o.Consumer != nil && o.Consumer.Kind == "Metal3Machine" && !o.HostPaused
}

// inert: an object of a kind whose controller acts only for an owning Machine or MachinePool, and that has none yet.
// Its cluster's controllers are paused, so it cannot get one now.
func inert(o object.Observed) bool {
	if o.Ref.Group == object.CoreGroup || o.ClusterName == "" {
		return false
	}
	for _, owner := range o.Owners {
		if owner.Ref.Group == object.CoreGroup {
			return false
		}
	}
	return true
}
