package remediator

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
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
	switch {
	case f.starting():
		return risk{}
	case !r.none():
		return r
	case !f.maySpare(m):
		return f.minority("without machine " + m.Name)
	default:
		return f.overtaken(m)
	}
}

// overtaken is the risk that a control plane which is asked for this machine takes another one first, that somebody else asked it for, and
// that etcd cannot spare. It may have been unable to take that one before, because of this one (HasHealthyMachineStillProvisioning), and it
// trusts conditions that say little (targetEtcdClusterHealthy).
func (f *Facts) overtaken(m *Machine) risk {
	first := f.first(m)
	if !f.isControlPlane() || first == m || f.maySpare(first) {
		return risk{}
	}
	by := ""
	if first.Unwired != "" {
		by = ": MachineHealthCheck " + first.Unwired
	}
	r := f.minority(f.Owner.Name + " would remediate machine " + first.Name + " first, which somebody else asks of it; without that one")
	if len(Count(f.Etcd).Silent) > 0 {
		r.next += "; or "
	} else {
		r.next = ""
	}
	r.next += "take back what asks for machine " + first.Name + by
	return r
}

// first is the machine that a control plane remediates when it is asked for this one (getMachineToBeRemediated): the most broken of those
// that it is asked for.
func (f *Facts) first(m *Machine) *Machine {
	for other := range f.all() {
		if handedOver(other) && other.Conditions[clusterv1.MachineHealthCheckSucceededCondition].Status == object.False && sooner(other, m) < 0 {
			m = other
		}
	}
	return m
}

// sooner compares two machines that a control plane is asked for, as it does (pickMachineToBeRemediated).
func sooner(a, b *Machine) int {
	by := cmp.Or(cmp.Compare(count(b.Remediate), count(a.Remediate)), cmp.Compare(count(a.Node != ""), count(b.Node != "")))
	for _, condition := range []string{
		controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition,
	} {
		well := func(m *Machine) int { return count(m.Conditions[condition].Status == object.True) }
		by = cmp.Or(by, cmp.Compare(well(a), well(b)))
	}
	return cmp.Or(by, a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

// alone is the risk that no other machine of the control plane stays and serves the API. While one is being deleted, its member of
// etcd is about to go too.
func (f *Facts) alone(m *Machine) risk {
	if !f.isControlPlane() {
		return risk{}
	}
	serves := false
	for other := range f.all() {
		switch {
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
