package remediator

import (
	"fmt"
	"slices"
	"strings"
)

// risk is what a control plane would lose when a machine is away, and what a human can do about it. The zero value is none.
type risk struct{ why, next string }

func (r risk) none() bool { return r.why == "" }

// away is the risk while a machine is away for a while, for a reboot. It is asked again before each write that may bring that about.
func (f *Facts) away(m *Machine) risk {
	r := f.alone(m)
	if r.none() && f.isControlPlane() && !f.Owner.ExternalEtcd && !Count(f.Etcd).MayStop(f.answers(m)) {
		return f.minority("while machine " + m.Name + " is away")
	}
	return r
}

// removed is the risk when a machine goes for good. It is asked again each time that an owner is told to take one.
func (f *Facts) removed(m *Machine) risk {
	r := f.alone(m)
	if r.none() && !f.maySpare(m) {
		return f.minority("without machine " + m.Name)
	}
	return r
}

// alone is the risk that no other machine of the control plane stays and serves the API. While one is being deleted, its member of
// etcd is about to go too.
func (f *Facts) alone(m *Machine) risk {
	if !f.isControlPlane() {
		return risk{}
	}
	serves := false
	for i := range f.Machines {
		switch other := &f.Machines[i]; {
		case other.UID == m.UID:
		case other.Deleting:
			return risk{"machine " + other.Name + " is being deleted" + hooks(other.Hooks), "see what holds its deletion, if it hangs"}
		default:
			serves = serves || !slices.Contains(other.broken(f.Owner.ExternalEtcd), apiServer)
		}
	}
	if !serves {
		return risk{"no other machine than " + m.Name + " is known to serve the API", "bring the kube-apiserver of another machine back"}
	}
	return risk{}
}

// minority is the risk that etcd's members are no majority.
func (f *Facts) minority(when string) risk {
	q := Count(f.Etcd)
	r := risk{fmt.Sprintf("%s, etcd would have no majority: %d of %d voters answer now", when, q.Answering, q.Voters), "it continues when more members of etcd answer"}
	if len(q.Silent) > 0 {
		r.next = "bring back " + strings.Join(q.Silent, ", ")
	}
	return r
}
