package pause

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"scute.dev/kube/object"
)

// State is an acknowledged pause as far as it is known. A move folds it from its events; a task of a run keeps it while it works.
type State struct {
	// Roots are what the pause is set on.
	Roots []Root
	// Baseline is what every object said just before.
	Baseline map[object.Ref]Baseline
	// PausedAt is when the pause was seen on every root.
	PausedAt time.Time
	// Acks says of each object that has acknowledged the pause how it did.
	Acks map[object.Ref]Signal
}

// Subject is an object that a pause may have to bring to rest.
type Subject struct {
	object.Observed
	// Cluster is the name of the Cluster that it belongs to, "" for none.
	Cluster string
	// Free says that its controllers may continue.
	Free bool
}

// Wait is an object that is waited for.
type Wait struct {
	Ref object.Ref `json:"ref"`
	Why string     `json:"why"`
}

// Lifted is a root that is no longer paused, or gone.
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

// Users is which objects users have paused themselves: by an annotation, or through their Cluster.
type Users map[string]bool

// UsersOf are the Clusters among subjects that are paused.
func UsersOf(subjects []Subject) Users {
	paused := make(Users)
	for _, o := range subjects {
		if IsCluster(o.Ref) && o.Observed.Cluster.Paused {
			paused[o.Ref.Name] = true
		}
	}
	return paused
}

// Hold says whether a user's own pause is in force on an object.
func (u Users) Hold(o Subject) bool { return o.PausedByUser || u[o.Cluster] }

// Look is what one look at all subjects shows.
type Look struct {
	// New are those that have acknowledged the pause since the look before; Pending are those that have not yet.
	New     map[object.Ref]Signal
	Pending []Wait
	// Wake are those of the pending whose controllers have to be woken by a write. It is empty while looks bring acknowledgements:
	// the others are on their way, and each write would be work for the very controllers that are waited for.
	Wake []object.Ref
	// Stable: nothing is pending, and the look before showed the same objects.
	Stable bool
}

// Watch looks at one pause again and again. The zero value is ready for use.
type Watch struct {
	spoke    map[string]bool
	graph    string // of the look before
	patience Patience
}

// Patience decides when silent controllers are woken by writes: most act by themselves. The zero value is ready for use.
type Patience struct {
	quiet int // looks in a row that showed nothing new
}

// Over counts one more look and reports whether silent controllers have to be woken: two looks in a row showed nothing new, and half a second
// has passed since the wait began.
func (p *Patience) Over(news int, waited time.Duration) bool {
	if p.quiet++; news > 0 {
		p.quiet = 0
	}
	return p.quiet >= 2 && waited >= 500*time.Millisecond
}

// Look judges each subject that has not acknowledged yet. It takes all of them every time: what appears after the pause must
// acknowledge too. others are objects that show which kinds speak.
func (w *Watch) Look(s *State, subjects []Subject, others []object.Observed, now time.Time) Look {
	w.hear(s, others)
	look := Look{New: make(map[object.Ref]Signal)}
	for _, o := range subjects {
		_, acked := s.Acks[o.Ref]
		if was := s.Baseline[o.Ref].UID; was != "" && was != o.UID {
			acked = false // a namesake has its place now
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

// hear keeps the kinds of which some object gives the signal, now or at the baseline.
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

// fingerprint identifies which objects there are; not what they say.
func fingerprint(subjects []Subject) string {
	h := sha256.New()
	for _, o := range subjects {
		h.Write([]byte(o.Ref.String() + "\x00" + string(o.UID) + "\x00"))
	}
	return hex.EncodeToString(h.Sum(nil))
}
