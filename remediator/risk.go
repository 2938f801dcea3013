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

// risk describes why an action would be dangerous or pointless now, and what a human can do about
// it. The zero value means no risk.
type risk struct{ why, next string }

func (r risk) none() bool { return r.why == "" }

// riskOfStopping returns the risk of making a machine unavailable for a while, as by a reboot. It
// is checked again before each write that may do so.
func (f *Facts) riskOfStopping(m *Machine) risk {
	r := f.riskAlone(m)
	if r.none() && f.isControlPlane() && !f.Owner.ExternalEtcd && !Count(f.Etcd).MayStop(f.etcdAnswers(m)) {
		return f.riskOfMinority("while machine " + m.Name + " is unavailable")
	}
	return r
}

// riskOfRemoval returns the risk of deleting a machine. It is checked again before each request to
// an owner to delete the machine.
func (f *Facts) riskOfRemoval(m *Machine) risk {
	r := f.riskAlone(m)
	switch {
	case f.isInitializing():
		return risk{}
	case !r.none():
		return r
	case !f.maySpare(m):
		return f.riskOfMinority("without machine " + m.Name)
	default:
		return f.riskOfOther(m)
	}
}

// riskOfOther returns the risk that a control plane, when asked to remediate m, first remediates a
// different machine, which another client asked it to remediate and which etcd cannot spare. So
// far, m may have prevented that remediation (HasHealthyMachineStillProvisioning). The control
// plane itself checks only the conditions of machines (targetEtcdClusterHealthy), not etcd.
func (f *Facts) riskOfOther(m *Machine) risk {
	first := f.remediatedFirst(m)
	if !f.isControlPlane() || first == m || f.maySpare(first) {
		return risk{}
	}
	by := ""
	if first.OtherHealthCheck != "" {
		by = ": MachineHealthCheck " + first.OtherHealthCheck
	}
	r := f.riskOfMinority(f.Owner.Name + " would remediate machine " + first.Name + " first, as another client requests; without machine " + first.Name)
	r.next += "; or withdraw the request to remediate machine " + first.Name + by
	return r
}

// remediatedFirst returns the machine that a control plane would remediate first if it were asked
// to remediate m: the most broken of all machines that it is asked to remediate
// (getMachineToBeRemediated).
func (f *Facts) remediatedFirst(m *Machine) *Machine {
	for other := range f.all() {
		if handedOver(other) && other.Conditions[clusterv1.MachineHealthCheckSucceededCondition].Status == object.False && compareUrgency(other, m) < 0 {
			m = other
		}
	}
	return m
}

// compareUrgency compares two machines that a control plane is asked to remediate, like
// pickMachineToBeRemediated. It returns a negative number if the control plane would remediate a
// first.
func compareUrgency(a, b *Machine) int {
	by := cmp.Or(cmp.Compare(boolToInt(b.Remediate), boolToInt(a.Remediate)), cmp.Compare(boolToInt(a.Node != ""), boolToInt(b.Node != "")))
	for _, condition := range []string{
		controlplanev1.KubeadmControlPlaneMachineEtcdMemberHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineEtcdPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineAPIServerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineControllerManagerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineSchedulerPodHealthyCondition,
		controlplanev1.KubeadmControlPlaneMachineNodeKubeadmLabelsAndTaintsSetCondition,
	} {
		well := func(m *Machine) int { return boolToInt(m.Conditions[condition].Status == object.True) }
		by = cmp.Or(by, cmp.Compare(well(a), well(b)))
	}
	return cmp.Or(by, a.Created.Compare(b.Created), cmp.Compare(a.Name, b.Name))
}

// riskAlone returns the risk that no machine of the control plane other than m serves the API. It
// also returns a risk while another machine is being deleted, because the etcd member of that
// machine is about to be removed.
func (f *Facts) riskAlone(m *Machine) risk {
	if !f.isControlPlane() {
		return risk{}
	}
	serves := false
	for other := range f.all() {
		switch {
		case other.UID == m.UID:
		case other.Deleting:
			return risk{"machine " + other.Name + " is being deleted" + formatHooks(other.Hooks), "if its deletion hangs, find out what blocks it"}
		default:
			serves = serves || !slices.Contains(other.brokenComponents(f.Owner.ExternalEtcd), apiServer)
		}
	}
	if !serves {
		return risk{"no machine other than " + m.Name + " is known to serve the API", "bring back the kube-apiserver of another machine"}
	}
	return risk{}
}

// riskOfMinority returns the risk that the answering members of etcd would not be a majority. when
// describes the situation in which they would not.
func (f *Facts) riskOfMinority(when string) risk {
	q := Count(f.Etcd)
	r := risk{fmt.Sprintf("%s, etcd would have no majority: %d of %d voters answer now", when, q.Answering, q.Voters), "it continues when more members of etcd answer"}
	if len(q.Silent) > 0 {
		r.next = "bring back " + strings.Join(q.Silent, ", ")
	}
	return r
}
