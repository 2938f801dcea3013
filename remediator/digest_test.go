package remediator_test

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/remediator"
)

// digest is the hash of a state. Two states have equal digests when no later event can distinguish them.
type digest [16]byte

// digest returns the digest of the node. It omits what only users read (decisions, reasons, outcomes, counts far from
// their limits) and what a machine was created for, as the owners of small worlds do not bound their retries. It
// identifies machines by their order of creation, and reduces times to whether their timeouts have expired.
func (n *node) digest() digest {
	w := n.w
	w.updateConditions()
	b := &writer{n: n}
	b.add(n.faultsLeft, n.deaths, n.desired, n.excess, n.reverted, n.raced, n.faults == n.faultsAtStart, n.faults == n.faultsAtObservation, max(1, n.spare))
	o := w.owner
	b.add(o.Replicas, o.Observed, o.Uninitialized, w.cluster.TopologyReplicas, w.target, len(w.orphans))
	for _, orphan := range w.orphans {
		b.add(orphan.Name != "", orphan.Learner)
	}
	b.note(o.Relaxed)
	b.touched(o.Touched)
	for _, e := range slices.Backward(n.state.History) {
		if e.Outcome == remediator.EndCancelled && e.Cause == remediator.TimedOut {
			b.expired(e.EndedAt, time.Minute)
			break
		}
	}
	b.active(n.state.Active)
	for _, m := range w.machines {
		b.machine(m)
	}
	sum := sha256.Sum256(b.text)
	return digest(sum[:16])
}

type writer struct {
	n    *node
	text []byte
}

func (b *writer) add(values ...any) {
	for _, v := range values {
		switch v := v.(type) {
		case string:
			b.text = append(b.text, v...)
		case bool:
			b.text = strconv.AppendBool(b.text, v)
		case int:
			b.text = strconv.AppendInt(b.text, int64(v), 10)
		case int32:
			b.text = strconv.AppendInt(b.text, int64(v), 10)
		default:
			b.text = fmt.Append(b.text, v)
		}
		b.text = append(b.text, ' ')
	}
	b.text = append(b.text, '\n')
}

// expired writes whether the timeout since t has expired.
func (b *writer) expired(t time.Time, timeout time.Duration) {
	b.add(!t.IsZero(), b.n.w.now.Sub(t) > timeout)
}

// machineIndex returns the index of the machine in the order of creation, -1 if the machine is
// gone, or -2 for an empty UID.
func (b *writer) machineIndex(uid types.UID) int {
	if uid == "" {
		return -2
	}
	return slices.IndexFunc(b.n.w.machines, func(m *machine) bool { return m.UID == uid })
}

// note writes which machine the owner's remediation annotation names, and whether the owner regards it as stale.
func (b *writer) note(value string) {
	data, ok := remediation(value)
	if !ok {
		b.add("no note", value != "")
		return
	}
	stale := slices.ContainsFunc(b.n.w.machines, func(m *machine) bool { return m.Created.After(data.Timestamp) })
	ours := b.n.state.Active != nil && b.n.state.Active.Victim.Name == data.Machine
	b.add("note", b.machineIndex(types.UID(data.Machine+"-uid")), stale, ours)
}

func (b *writer) touched(value string) {
	a := b.n.state.Active
	ours := a != nil && strings.HasPrefix(value, fmt.Sprintf("%s-%d", a.Victim.Name, a.Request.Attempt))
	b.add("touched", value != "", ours, strings.HasSuffix(value, "-cancel"))
}

func (b *writer) active(a *remediator.Active) {
	if a == nil {
		b.add("nothing")
		return
	}
	r := a.Request
	b.add(r.Method, r.Relaxed, r.From, r.To, r.Where, r.Trigger, r.Original, b.machineIndex(a.Victim.UID), b.machineIndex(a.Replacement.UID), a.Ready, a.Scale, a.Step, a.Cause, a.Frozen)
	timeout := map[remediator.Step]time.Duration{remediator.Cancelling: 30 * time.Second, remediator.Settling: 8 * time.Minute}[a.Step]
	b.expired(a.Since, cmp.Or(timeout, 4*time.Minute))
	if a.Frozen != "" {
		b.expired(a.FrozenAt, 4*time.Minute)
	}
}

func (b *writer) machine(m *machine) {
	n := b.n
	b.add("machine", m.Deleting, m.Node != "", m.Kubelet, m.Pods, m.Etcd, m.Pressed, m.Member, m.Learner, m.Leader, m.NeverJoins, m.Skip, m.Remediate,
		m.DeleteAnnotation, m.Template, m.ClonedFrom, m.UnhealthyAnnotation != "", m.Request != nil)
	if m.Node == "" {
		b.expired(m.Created, 4*time.Minute)
	}
	left := m.stopTime().Sub(n.w.now) // stops within the next time step, later, or never
	b.add(m.Annotations != nil, left <= 5*time.Minute)
	if m.Deleting {
		b.expired(m.DeletingSince, 4*time.Minute)
	}
	for _, name := range []string{"HealthCheckSucceeded", "OwnerRemediated", "ExternallyRemediated"} {
		b.add(m.Conditions[name].Status, m.Conditions[name].Reason)
	}
	a := n.state.Active
	in := func(list []remediator.Subject) bool {
		return slices.ContainsFunc(list, func(s remediator.Subject) bool { return s.UID == m.UID })
	}
	if a != nil {
		b.add(in(a.Request.Baseline), in(a.Extras), m.Certificates == a.Request.TriggerValue, m.CertificatesStatus == a.Request.TriggerValue)
	}
	b.add(n.last == nil || in(n.last.Request.Baseline), m.Certificates != "", m.CertificatesStatus != "", n.surplus(m))
	u := n.state.Unhealthy[m.UID]
	if u == nil {
		b.add("well")
		return
	}
	b.expired(u.LastAttempt, time.Minute)
	b.add(m.Request != nil && m.Request.Created.Before(u.ClearedAt))
	if u.Mark.State == "" {
		return
	}
	earlier := 0 // the machine that has been unhealthy longest comes first
	for _, other := range n.state.Unhealthy {
		if other.Mark.State != "" && other.UnhealthyAt.Before(u.UnhealthyAt) {
			earlier++
		}
	}
	b.add(u.Mark.State, u.Mark.Source, strings.Contains(m.UnhealthyAnnotation, string(u.Mark.State)), strings.Contains(m.UnhealthyAnnotation, string(remediator.Scheduled)), earlier)
}
