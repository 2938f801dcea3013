package remediator

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// KeepHook is the deletion hook by which scute keeps a machine that was replaced. Cluster API drains its Node and detaches its volumes,
// and then waits with the deletion of its infrastructure until the annotation is gone.
const KeepHook = clusterv1.PreTerminateDeleteHookAnnotationPrefix + "/scute-forensics"

// KeepNote is what scute notes on a machine that it keeps, as JSON: it is found by it also when its MachineSet, or its owner, is gone.
type KeepNote struct {
	// Owner of the machine.
	Owner Owner `json:"owner"`
	// Apart: it is set apart. Labels are those that it had before, by which its MachineSet counted it.
	Apart  bool              `json:"apart,omitempty"`
	Labels map[string]string `json:"labels,omitempty"`
}

// KeepNoteOf reads a note; ok is false where there is none.
func KeepNoteOf(annotations map[string]string) (n KeepNote, ok bool) {
	value, there := annotations[object.KeptAnnotation]
	if !there || json.Unmarshal([]byte(value), &n) != nil {
		return KeepNote{}, there
	}
	return n, true
}

// Forensics is how long machines are kept after their replacement, and how many at once. The zero value keeps none.
type Forensics struct {
	For    time.Duration
	AtMost int
}

// Keep is what scute wrote on a machine to keep it. The zero value is nothing.
type Keep struct {
	// Noted: the machine has scute's note, which is written together with the hook.
	Noted bool
	// Hook is there. Value is what it says: what scute wrote, or what somebody wrote since, for how long or until when.
	Hook  bool
	Value string
	// Apart: the labels by which its MachineSet counts it are taken off.
	Apart bool
	// Since its deletion waits for hooks alone; zero before.
	Since time.Time
}

// mostKept bounds how many kept machines a state remembers: more than any policy allows.
const mostKept = 1000

// Kept is a machine that is kept after its replacement, or is about to be.
type Kept struct {
	Subject
	For time.Duration
	// Released is why it is no longer kept, "" while it is.
	Released string
}

// KeptUntil is when a machine is kept no longer: for as long as its hook says, also in days (7d), or until that time, else for as long as
// was recorded. It is zero before the wait has begun.
func KeptUntil(k Keep, recorded time.Duration) time.Time {
	if k.Since.IsZero() {
		return time.Time{}
	}
	if at, err := time.Parse(time.RFC3339, strings.TrimSpace(k.Value)); err == nil {
		return at
	}
	if d, err := time.ParseDuration(strings.TrimSpace(k.Value)); err == nil {
		return k.Since.Add(max(d, 0))
	}
	if n, days := strings.CutSuffix(strings.TrimSpace(k.Value), "d"); days { // time knows no days, and people do
		if n, err := strconv.ParseUint(n, 10, 16); err == nil {
			return k.Since.AddDate(0, 0, int(n))
		}
	}
	return k.Since.Add(recorded)
}

// Release is the command that ends the keeping of a machine, whether scute runs or not.
func Release(namespace, machine string) string {
	return "kubectl -n " + namespace + " annotate machine " + machine + " " + KeepHook + "-"
}

// Whether a machine is kept is decided once, before its owner is told to delete it.
//
//nolint:gochecknoglobals // a table
var (
	keeps = transition{
		when: "the policy keeps machines that were replaced (`forensics`)", event: MachineKept{}, to: same,
		facts: func(r remediation) []Event {
			if !r.wantsKeep() || !r.ready() || r.cannotKeep() != "" {
				return nil
			}
			return []Event{MachineKept{Machine: r.Victim, For: r.facts.Policy.Forensics.For.String()}}
		},
	}
	keepsNot = transition{
		when: "the policy keeps machines that were replaced, and cannot keep this one", event: MachineNotKept{}, to: same,
		facts: func(r remediation) []Event {
			if why := r.cannotKeep(); r.wantsKeep() && why != "" && (r.ready() || r.Request.Method == OwnerRemediation) {
				return []Event{MachineNotKept{Machine: r.Victim, Why: why}}
			}
			return nil
		},
	}
)

// wantsKeep says that the policy keeps workers, and that nothing was decided for this one. A control plane machine is never kept: its
// etcd member votes until the last hook is gone.
func (r remediation) wantsKeep() bool {
	free := r.by == nil || r.by.writes == writesAll
	return r.facts.Policy.Forensics.For > 0 && !r.facts.isControlPlane() && !r.KeepDecided && free && r.victim != nil && !r.victim.Deleting
}

// cannotKeep is why the machine is not kept, "" when it can be.
func (r remediation) cannotKeep() string {
	switch {
	case r.Request.Method != Surge:
		return r.facts.Owner.Name + " deletes it first, and creates another only when it is gone"
	case r.unhealthy != nil && r.unhealthy.noticed():
		return "nothing is wrong with it: it is about to stop"
	case r.facts.Ledger.Kept+r.kept >= r.facts.Policy.Forensics.AtMost:
		return "as many machines as the policy allows are kept already (forensics.atMost)"
	default:
		return ""
	}
}

// preserve puts the hook on the machine, before its owner is told to delete it.
func (r remediation) preserve() []Action {
	if r.Keeps == "" || r.victim.Deleting || r.victim.Keep.Noted {
		return nil
	}
	return []Action{r.set(KeepMachine, r.Keeps)}
}

// keeping ends what is kept: when its time is over, when nobody keeps it any more, and when it is gone.
func keeping(s *State, f *Facts, now time.Time) []Event {
	var events []Event
	for _, k := range s.kept() {
		m := f.present(k.Subject)
		switch {
		case m == nil, k.Released != "" && !m.Keep.Noted:
			events = append(events, KeepEnded{Machine: k.Subject})
		case k.Released == "":
			if why := s.release(k, m, f, now); why != "" {
				events = append(events, MachineReleased{Machine: k.Subject, Why: why})
			}
		}
	}
	return events
}

// release is why a machine is kept no longer, "" while it is. A policy that cannot be read ends nothing: the time that is recorded does.
func (s *State) release(k *Kept, m *Machine, f *Facts, now time.Time) string {
	a := s.activeOf(m.UID)
	victim := a != nil && !a.takingBack()
	until := KeptUntil(m.Keep, k.For)
	switch {
	case m.Keep.Noted && !m.Keep.Hook:
		return "its deletion hook was removed"
	case !f.Owner.Found || f.Owner.Deleting || !f.Cluster.Found || f.Cluster.Deleting:
		return "its owner, or the Cluster, is being deleted"
	case f.Policy.Name == "":
		return "no RepairPolicy selects its Cluster any more"
	case f.Policy.Unreadable == "" && f.Policy.Forensics.For <= 0:
		return "RepairPolicy " + f.Policy.Name + " keeps no machines any more"
	case m.Deleting && !m.Keep.Noted:
		return "it was deleted before it could be kept"
	case !m.Deleting && !victim:
		return "it is not replaced"
	case !until.IsZero() && !now.Before(until):
		return "its time is over"
	default:
		return ""
	}
}

// keepWrites set the machines apart that wait to be looked at, so that their MachineSets no longer count them; and take the hook off
// those that are kept no longer. So they do of a hook of which the log knows nothing.
func keepWrites(s *State, f *Facts, r *remediation) []Action {
	var actions []Action
	each := func(m *Machine) {
		switch k := s.Kept[m.UID]; {
		case m.Keep.Noted && (k == nil || k.Released != "") && (m.Keep.Hook || !m.Deleting):
			actions = append(actions, Action{Type: ReleaseMachine, Machine: m.subject()})
		case k != nil && m.Deleting && m.Keep.Hook && !m.Keep.Apart && !m.Keep.Since.IsZero() && (r == nil || r.method.undone(*r)):
			actions = append(actions, Action{Type: SetApart, Machine: m.subject()})
		}
	}
	for i := range f.Machines {
		each(&f.Machines[i])
	}
	for i := range f.Kept {
		each(&f.Kept[i])
	}
	return actions
}

// present is a machine that there is, also one that is kept.
func (f *Facts) present(m Subject) *Machine {
	if found := f.machine(m); found != nil {
		return found
	}
	i := slices.IndexFunc(f.Kept, func(x Machine) bool { return x.UID == m.UID })
	if i < 0 {
		return nil
	}
	return &f.Kept[i]
}

// CountKept counts the machines that are kept, or are about to be. One that is released counts until its hook is off.
func CountKept(s *State) int { return len(s.Kept) }

// kept returns them in the order of their names.
func (s *State) kept() []*Kept {
	list := make([]*Kept, 0, len(s.Kept))
	for _, k := range s.Kept {
		list = append(list, k)
	}
	slices.SortFunc(list, func(a, b *Kept) int {
		return strings.Compare(a.Name+"/"+string(a.UID), b.Name+"/"+string(b.UID))
	})
	return list
}

func (s *State) applyKept(e MachineKept) {
	if a := s.Active; a != nil {
		a.KeepDecided = true
		if a.Victim.UID == e.Machine.UID {
			a.Keeps = e.For
		}
	}
	if len(s.Kept) >= mostKept {
		return
	}
	d, err := time.ParseDuration(e.For)
	if err != nil {
		d = 0 // what cannot be read keeps nothing for long
	}
	if s.Kept == nil {
		s.Kept = make(map[types.UID]*Kept)
	}
	s.Kept[e.Machine.UID] = &Kept{Subject: e.Machine, For: d}
}

func (s *State) applyReleased(e MachineReleased) {
	if a := s.Active; a != nil && a.Victim.UID == e.Machine.UID {
		a.Keeps = ""
	}
	if k := s.Kept[e.Machine.UID]; k != nil {
		k.Released = e.Why
	}
}

// keptVictim says of the machine whose remediation is in progress how long it is kept, and how it is released.
func (s *State) keptVictim() string {
	if s.Active == nil {
		return ""
	}
	return s.Active.Keeps + "; next: its infrastructure is deleted after that, or when you release it: `" + Release(s.Owner.Namespace, s.Active.Victim.Name) + "`"
}
