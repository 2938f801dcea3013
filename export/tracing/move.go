package tracing

import "scute.dev/mover"

const (
	spanMove  = "move"
	spanPhase = "phase"
)

type move struct {
	tree
	state mover.State
}

func (m *move) apply(e mover.Event, ev *stored) []Span {
	if _, requested := e.(mover.Requested); requested && m.finished() {
		m.traceID = TraceID(ev.logID, ev.aggregate, "")
		s := ev.root("move", "root", "")
		s.SpanID = RootID(ev.logID, ev.aggregate)
		m.begin(spanMove, "", s)
	}
	if m.finished() {
		return nil // the move has ended
	}
	before := m.state.Phase
	m.state.Apply(e, ev.Time)
	if m.state.Phase != before {
		m.enterPhase(ev)
	}
	return m.drain()
}

func (m *move) enterPhase(ev *stored) {
	s := &m.state
	if s.Phase == mover.PhaseFailed && s.Failure.Message != "" {
		m.end(spanPhase, outcome{failed: true, result: resultFailed, message: s.Failure.Message}, ev)
	} else {
		m.end(spanPhase, outcome{}, ev)
	}
	if !s.Finished() {
		m.begin(spanPhase, spanMove, ev.span(string(s.Phase), spanPhase, string(s.Phase)))
		return
	}
	o := outcome{failed: s.Phase != mover.PhaseSucceeded, result: string(s.Phase)}
	switch {
	case !o.failed:
	case s.Failure.Message != "":
		o.message = s.Failure.Message
	case s.RollbackCause != "":
		o.message = s.RollbackCause
	case len(s.Findings) > 0:
		o.message = s.Findings[0].Field + ": " + s.Findings[0].Message
	}
	m.end(spanMove, o, ev)
}
