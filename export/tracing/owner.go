package tracing

import (
	"cmp"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/remediator"
)

// Spans of a machine. All spans of one UID belong to one trace.
const (
	spanRemediation = "remediation"
	spanStep        = "step"
	spanEscalation  = "escalation"
)

// owner is an owner of machines. Spans of its machines are open.
type owner struct {
	// state is not the complete state of the owner: it begins empty, because the progress of a
	// remediation depends only on the events since the start of the remediation.
	state    remediator.State
	machines map[types.UID]*machine
}

type machine struct {
	tree
	step remediator.Step
}

func (o *owner) finished() bool { return len(o.machines) == 0 }

func (o *owner) apply(e remediator.Event, ev *stored) (ended []Span) {
	switch e := e.(type) {
	case remediator.SurgeRequested, remediator.HandedOver:
	case remediator.EscalationStarted:
		o.beginEscalation(e, ev)
	case remediator.EscalationEnded:
		o.machine(e.Machine, ev).end(spanEscalation, outcome{failed: true, result: cmp.Or(string(e.Outcome), resultFailed), message: e.Reason}, ev)
	case remediator.MachineMarkCleared:
		if m := o.machines[e.Machine.UID]; m != nil {
			m.end(spanEscalation, outcome{result: cmp.Or(string(e.Cause), string(remediator.Recovered))}, ev)
		}
	default:
		if o.finished() {
			return nil
		}
	}
	o.state.Apply(e, ev.Time)
	o.syncSpans(ev)
	for _, uid := range slices.Sorted(maps.Keys(o.machines)) {
		m := o.machines[uid]
		ended = append(ended, m.drain()...)
		if m.finished() {
			delete(o.machines, uid)
		}
	}
	return ended
}

func (o *owner) machine(of remediator.Subject, ev *stored) *machine {
	m := o.machines[of.UID]
	if m == nil {
		m = &machine{tree: tree{traceID: TraceID(ev.logID, ev.aggregate, string(of.UID))}}
		o.machines[of.UID] = m
	}
	return m
}

func (o *owner) beginEscalation(e remediator.EscalationStarted, ev *stored) {
	m := o.machine(e.Machine, ev)
	m.end(spanEscalation, outcome{failed: true, result: resultInterrupted}, ev)
	s := ev.root("escalation step", spanEscalation, string(e.Machine.UID))
	s.set(attributeMachine, e.Machine.Name)
	s.set(attributeStep, e.Step)
	m.begin(spanEscalation, "", s)
}

// syncSpans begins and ends spans according to the remediations in progress.
func (o *owner) syncSpans(ev *stored) {
	now := map[types.UID]*remediator.Active{}
	for _, a := range append(slices.Clone(o.state.Resting), o.state.Active) {
		if a != nil {
			now[a.Victim.UID] = a
		}
	}
	for uid, m := range o.machines {
		if now[uid] == nil && m.has(spanRemediation) {
			o.endRemediation(uid, m, ev)
		}
	}
	for _, a := range now {
		m := o.machine(a.Victim, ev)
		if !m.has(spanRemediation) {
			m.step = ""
			m.begin(spanRemediation, "", o.newRemediationSpan(a, ev))
		}
		if m.step != a.Step {
			m.end(spanStep, outcome{}, ev)
			m.begin(spanStep, spanRemediation, ev.span(string(a.Step), spanStep+string(a.Step), string(a.Victim.UID)))
			m.step = a.Step
		}
	}
}

func (o *owner) newRemediationSpan(a *remediator.Active, ev *stored) *Span {
	s := ev.root("remediation", spanRemediation, string(a.Victim.UID))
	s.set(attributeMachine, a.Victim.Name)
	s.set(attributeMethod, string(a.Request.Method))
	if a.Request.Attempt > 0 {
		s.Attributes = append(s.Attributes, attributeAttempt.Int(a.Request.Attempt))
	}
	return s
}

func (o *owner) endRemediation(uid types.UID, m *machine, ev *stored) {
	end := outcome{failed: true, result: string(remediator.EndCancelled)}
	for _, past := range slices.Backward(o.state.History) {
		if past.Victim.UID == uid {
			end = outcome{past.Outcome != remediator.EndSucceeded, string(past.Outcome), string(past.Cause), ""}
			if end.failed {
				end.message = past.Note
			}
			break
		}
	}
	m.end(spanRemediation, end, ev)
}
