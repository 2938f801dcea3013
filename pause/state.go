package pause

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"slices"
	"time"

	"scute.dev/kube/object"
)

// State contains what is known about a pause. A move derives it from its events; a task of a run
// keeps it in memory.
type State struct {
	Roots []Root
	// Baseline is the state of every object just before the pause.
	Baseline map[object.Ref]Baseline
	// PausedAt is when the pause was observed on every root.
	PausedAt time.Time
	Acks     map[object.Ref]Signal
}

// Subject is an object that may have to acknowledge a pause.
type Subject struct {
	object.Observed
	// Cluster is the name of the object's Cluster, "" for none.
	Cluster string
	// Exempt means that the object need not acknowledge, because its controllers may stay active.
	Exempt bool
}

// PendingObject is an object that has not acknowledged, with the reason.
type PendingObject struct {
	Ref    object.Ref `json:"ref"`
	Reason string     `json:"reason"`
}

// FindUnpaused returns a root that another client has unpaused or deleted. lifted is false if there
// is none.
func (s *State) FindUnpaused(subjects []Subject) (root object.Ref, lifted bool) {
	paused := make(map[object.Ref]bool)
	for _, o := range subjects {
		paused[o.Ref] = IsRoot(o.Ref) && RootOf(o.Observed).Found
	}
	for _, root := range s.Roots {
		if !paused[root.Ref] {
			return root.Ref, true
		}
	}
	return object.Ref{}, false
}

// PausedClusters is the set of the names of Clusters that a user or another holder has paused.
type PausedClusters map[string]bool

// PausedClustersOf returns the paused Clusters among subjects.
func PausedClustersOf(subjects []Subject) PausedClusters {
	paused := make(PausedClusters)
	for _, o := range subjects {
		if IsCluster(o.Ref) && o.Observed.Cluster.Paused {
			paused[o.Ref.Name] = true
		}
	}
	return paused
}

// IsPaused reports whether an object is paused by its own annotation or by its Cluster.
func (u PausedClusters) IsPaused(o Subject) bool { return o.PausedByUser || u[o.Cluster] }

// Evaluation is the result of one evaluation of all subjects.
type Evaluation struct {
	// New contains the objects that have acknowledged since the previous evaluation. Pending
	// contains the objects that have not acknowledged.
	New     map[object.Ref]Signal
	Pending []PendingObject
	// Wake contains the pending objects that should be written to, to trigger their controllers. It
	// is empty while other objects acknowledge, because each write would slow the controllers down.
	Wake []object.Ref
	// Stable means that no object is pending, and that the previous evaluation had the same
	// objects.
	Stable bool
}

// Watch evaluates one pause repeatedly. The zero value is ready for use.
type Watch struct {
	reportingKinds  map[string]bool
	previousObjects string // fingerprint of the previous evaluation
	patience        Patience
}

// Patience determines when to trigger controllers that do not respond, by a write to their objects.
// Most controllers do not need that. The zero value is ready for use.
type Patience struct {
	quiet int // consecutive evaluations without news
}

// Exceeded counts one evaluation, with the number of its news, and reports whether the controllers
// should be triggered: two consecutive evaluations had no news, and the wait has lasted half a
// second.
func (p *Patience) Exceeded(news int, waited time.Duration) bool {
	if p.quiet++; news > 0 {
		p.quiet = 0
	}
	return p.quiet >= 2 && waited >= 500*time.Millisecond
}

// Evaluate evaluates each subject that has not acknowledged yet. subjects must contain all
// subjects, because objects that were created after the pause must acknowledge too. Evaluate also
// uses others to determine which kinds have a condition Paused.
func (w *Watch) Evaluate(s *State, subjects []Subject, others []object.Observed, now time.Time) Evaluation {
	w.recordKinds(s, others)
	look := Evaluation{New: make(map[object.Ref]Signal)}
	for _, o := range subjects {
		_, acked := s.Acks[o.Ref]
		if was := s.Baseline[o.Ref].UID; was != "" && was != o.UID {
			acked = false // another object with the same name
		}
		if o.Exempt || acked && !o.BlockMove {
			continue
		}
		v := EvaluateObject(s.Baseline[o.Ref], o.Observed, Context{KindReportsPaused: w.reportingKinds[o.Ref.GroupKind()], SincePause: now.Sub(s.PausedAt)})
		if v.Acknowledged {
			look.New[o.Ref] = v.How
			continue
		}
		look.Pending = append(look.Pending, PendingObject{Ref: o.Ref, Reason: v.Reason})
		if v.Touch {
			look.Wake = append(look.Wake, o.Ref)
		}
	}
	if !w.patience.Exceeded(len(look.New), now.Sub(s.PausedAt)) {
		look.Wake = nil
	}
	graph := fingerprint(subjects)
	look.Stable = len(look.Pending) == 0 && graph == w.previousObjects
	w.previousObjects = graph
	return look
}

func (w *Watch) recordKinds(s *State, others []object.Observed) {
	if w.reportingKinds == nil {
		w.reportingKinds = make(map[string]bool)
		for ref, b := range s.Baseline {
			if b.Paused != object.Absent {
				w.reportingKinds[ref.GroupKind()] = true
			}
		}
	}
	for _, o := range others {
		if o.Paused != object.Absent {
			w.reportingKinds[o.Ref.GroupKind()] = true
		}
	}
}

// Batches splits a map into parts of at most size objects, in the order of the references.
func Batches[V any](all map[object.Ref]V, size int) (parts []map[object.Ref]V) {
	for refs := range slices.Chunk(slices.SortedFunc(maps.Keys(all), object.Compare), size) {
		part := make(map[object.Ref]V, len(refs))
		for _, ref := range refs {
			part[ref] = all[ref]
		}
		parts = append(parts, part)
	}
	return parts
}

func fingerprint(subjects []Subject) string {
	h := sha256.New()
	for _, o := range subjects {
		h.Write([]byte(o.Ref.String() + "\x00" + string(o.UID) + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Duration is a time.Duration that is encoded as "5m0s".
type Duration time.Duration

// MarshalText encodes the duration in Go's notation.
func (d Duration) MarshalText() ([]byte, error) { return []byte(time.Duration(d).String()), nil }

// UnmarshalText decodes Go's notation.
func (d *Duration) UnmarshalText(text []byte) error {
	v, err := time.ParseDuration(string(text))
	*d = Duration(v)
	return err
}
