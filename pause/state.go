package pause

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"scute.dev/kube/object"
)

// State is the known state of an acknowledged pause. A move derives it from its events. A task of a run keeps it while it runs.
type State struct {
	// Roots are the paused roots.
	Roots []Root
	// Baseline is the state of every object just before the pause.
	Baseline map[object.Ref]Baseline
	// PausedAt is when the pause was observed on every root.
	PausedAt time.Time
	// Acks are the acknowledgements by object.
	Acks map[object.Ref]Signal
}

// Subject is an object that may have to acknowledge a pause.
type Subject struct {
	object.Observed
	// Cluster is the name of the object's Cluster, "" for none.
	Cluster string
	// Free means that the object's controllers may continue.
	Free bool
}

// Wait is a pending object, with the reason.
type Wait struct {
	Ref object.Ref `json:"ref"`
	Why string     `json:"why"`
}

// Lifted returns a root that is no longer paused, or was deleted.
func (s *State) Lifted(subjects []Subject) (root object.Ref, lifted bool) {
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

// Users are the names of Clusters that a user or another holder has paused.
type Users map[string]bool

// UsersOf returns the paused Clusters among subjects.
func UsersOf(subjects []Subject) Users {
	paused := make(Users)
	for _, o := range subjects {
		if IsCluster(o.Ref) && o.Observed.Cluster.Paused {
			paused[o.Ref.Name] = true
		}
	}
	return paused
}

// Hold reports whether an object is paused by its own annotation, or through one of the Clusters.
func (u Users) Hold(o Subject) bool { return o.PausedByUser || u[o.Cluster] }

// Look is the result of one evaluation of all subjects.
type Look struct {
	// New are the objects that have acknowledged the pause since the previous evaluation. Pending are those that have not acknowledged yet.
	New     map[object.Ref]Signal
	Pending []Wait
	// Wake are the pending objects whose controllers need a write to act. It is empty while other objects acknowledge, because each write would slow
	// down the controllers that are waited for.
	Wake []object.Ref
	// Stable means that nothing is pending, and that the previous evaluation had the same objects.
	Stable bool
}

// Watch evaluates one pause repeatedly. The zero value is ready for use.
type Watch struct {
	spoke    map[string]bool
	graph    string // of the previous evaluation
	patience Patience
}

// Patience decides when silent controllers are woken by writes, because most act without one. The zero value is ready for use.
type Patience struct {
	quiet int // consecutive evaluations without news
}

// Over counts an evaluation and reports whether silent controllers must be woken: two consecutive evaluations had no news, and the wait has lasted
// half a second.
func (p *Patience) Over(news int, waited time.Duration) bool {
	if p.quiet++; news > 0 {
		p.quiet = 0
	}
	return p.quiet >= 2 && waited >= 500*time.Millisecond
}

// Look evaluates each subject that has not acknowledged yet. subjects must always be complete, because objects that appear after the pause must
// acknowledge too. others are objects that show which kinds have a condition Paused.
func (w *Watch) Look(s *State, subjects []Subject, others []object.Observed, now time.Time) Look {
	w.hear(s, others)
	look := Look{New: make(map[object.Ref]Signal)}
	for _, o := range subjects {
		_, acked := s.Acks[o.Ref]
		if was := s.Baseline[o.Ref].UID; was != "" && was != o.UID {
			acked = false // another object with the same name
		}
		if o.Free || acked && !o.BlockMove {
			continue
		}
		v := Judge(s.Baseline[o.Ref], o.Observed, Context{KindSpeaks: w.spoke[o.Ref.GroupKind()], SincePause: now.Sub(s.PausedAt)})
		if v.Acknowledged {
			look.New[o.Ref] = v.How
			continue
		}
		look.Pending = append(look.Pending, Wait{Ref: o.Ref, Why: v.Why})
		if v.Touch {
			look.Wake = append(look.Wake, o.Ref)
		}
	}
	if !w.patience.Over(len(look.New), now.Sub(s.PausedAt)) {
		look.Wake = nil
	}
	graph := fingerprint(subjects)
	look.Stable = len(look.Pending) == 0 && graph == w.graph
	w.graph = graph
	return look
}

// hear records the kinds with a condition Paused on an object, now or in the baseline.
func (w *Watch) hear(s *State, others []object.Observed) {
	if w.spoke == nil {
		w.spoke = make(map[string]bool)
		for ref, b := range s.Baseline {
			if b.Paused != object.Absent {
				w.spoke[ref.GroupKind()] = true
			}
		}
	}
	for _, o := range others {
		if o.Paused != object.Absent {
			w.spoke[o.Ref.GroupKind()] = true
		}
	}
}

// fingerprint identifies the set of objects, without their state.
func fingerprint(subjects []Subject) string {
	h := sha256.New()
	for _, o := range subjects {
		h.Write([]byte(o.Ref.String() + "\x00" + string(o.UID) + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}
