package audit

import (
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// auditReport is a report for readers who know nothing else about the log. Its exported fields are
// for the templates.
type auditReport struct {
	Log, LogID string
	Made       time.Time
	// Selected are the flags that selected events, or "".
	Selected string
	// Last is the sequence of the last commit, and Events the number of selected events.
	Last   uint64
	Events int
	// Missing are the commits that are missing or out of order.
	Missing []seal.Run
	verification
	// People contains the requests and decisions of people, sent directly or through a resource.
	People  []kit.EventRow
	Stories []*story

	filter   *kit.Filter
	subjects *kit.Subjects
	byKey    map[key]*story
}

type verification struct {
	Checked, Violated bool
	Why               string
	// Size is the number of commits that the checkpoint covers, and Beyond the number of commits after
	// them.
	Size, Beyond uint64
	// Key is the key that signed the checkpoint. KeyFromCluster is true if the auditor did not supply
	// the key.
	Key            string
	KeyFromCluster bool
	Findings       []string
}

type story struct {
	Aggregate eventlog.Aggregate
	Clusters  []string
	// Machine is set for remediations only.
	Machine string
	Rows    []kit.EventRow
}

type key struct {
	aggregate eventlog.Aggregate
	machine   string
}

func newReport(f *kit.Filter) *auditReport {
	return &auditReport{filter: f, subjects: kit.NewSubjects(), byKey: make(map[key]*story)}
}

func (r *auditReport) addCommit(m eventlog.Record) error {
	r.recordMissing(m.Seq)
	r.Last = max(r.Last, m.Seq)
	for _, e := range r.filter.Select(r.subjects.Events(m)) {
		r.add(e)
	}
	return nil
}

// recordMissing records the gap between the last commit and the next one.
func (r *auditReport) recordMissing(next uint64) {
	if next > r.Last+1 {
		r.Missing = append(r.Missing, seal.Run{First: r.Last + 1, Last: next - 1})
	}
}

func (r *auditReport) add(e kit.Event) {
	r.Events++
	if e.Actor != "" && !strings.HasPrefix(e.Actor, "daemon/") {
		r.People = append(r.People, kit.EventRow{Event: e, Last: e.Seq, Commits: 1})
	}
	k := key{aggregate: e.Aggregate}
	if e.Aggregate.Kind == eventlog.KindRemediation && len(e.Subject.Machines) == 1 {
		k.machine = e.Subject.Machines[0]
	}
	s := r.byKey[k]
	if s == nil {
		s = &story{Aggregate: k.aggregate, Machine: k.machine}
		r.byKey[k] = s
		r.Stories = append(r.Stories, s)
	}
	s.Clusters = e.Subject.Clusters
	if n := len(s.Rows); n == 0 || !s.Rows[n-1].Join(e) {
		s.Rows = append(s.Rows, kit.EventRow{Event: e, Last: e.Seq, Commits: 1})
	}
}

func (s *story) Title() string {
	if s.Aggregate.Kind == "" {
		return "Messages that scute did not write"
	}
	kind := string(s.Aggregate.Kind)
	name := strings.ToUpper(kind[:1]) + kind[1:] + " " + s.Aggregate.ID
	switch {
	case s.Machine != "":
		name = "Machine " + s.Machine
	case s.Aggregate.Kind == eventlog.KindRemediation:
		name = "Machines of " + s.Aggregate.ID
	}
	if len(s.Clusters) > 0 && !slices.Contains(s.Clusters, "") {
		name += " of cluster " + strings.Join(s.Clusters, ", ")
	}
	return name
}

func (s *story) First() kit.EventRow { return s.Rows[0] }

func (s *story) End() kit.EventRow { return s.Rows[len(s.Rows)-1] }

// Outcome describes the last event, for example how a run ended.
func (s *story) Outcome() string {
	f := s.End().Line
	if f.Detail == "" {
		return f.Name
	}
	return f.Name + ": " + f.Detail
}
