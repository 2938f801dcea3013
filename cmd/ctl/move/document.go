package move

import (
	"cmp"
	"fmt"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/mover"
)

// Documents returns the move.
func (f *Fold) Documents(k *kit.Kit) []kit.Document {
	m := f.resource()
	d := kit.Document{
		Kind: "move", Namespace: m.Namespace, Name: m.Name, ID: f.id, Phase: string(m.Status.Phase), Message: m.Status.Message, Next: m.Status.Next,
		Progress: progress(m), Began: "since", Since: f.state.PhaseSince, Commands: hints(k, m), Actions: actionsOf(f.id, m),
		Details: func() kit.Details { return f.details(m) },
	}
	switch {
	case f.state.Finished():
		d.End(m.Status.FinishedAt)
	case m.Status.Stranded, m.Status.Phase == mover.PhaseFailed, m.Status.Phase == mover.PhaseStranded, f.state.TransientFailure.Message != "":
		d.State = kit.Waiting
	}
	return []kit.Document{d}
}

// details returns the details of a move, including the objects of the plan by level, owners first.
func (f *Fold) details(m *v1alpha1.Move) kit.Details {
	d, s := details(m), &f.state
	if s.Holder != "" {
		d.Fields = append(d.Fields, kit.Field{Name: "Driven by", Value: s.Holder})
	}
	plan := s.Plan
	if len(plan) == 0 {
		plan = s.Draft
	}
	for i, items := range mover.Levels(plan) {
		t := kit.Table{
			Title: fmt.Sprintf("Level %d", i), Cluster: 1,
			Header: []string{"Object", "Cluster", "Acknowledged the pause", "On the target", "On the source", "Reconciling"},
		}
		for _, item := range items {
			row := []string{item.Ref.Short(), item.Cluster, cmp.Or(string(s.Acks[item.Ref]), "not yet"), "·", "present", "·"}
			if _, created := s.Created[item.Ref]; created {
				row[3] = "✓ created"
			}
			switch {
			case s.Deleted[item.Ref]:
				row[4] = "✓ deleted"
			case item.KeepReason != "":
				row[4] = "stays: " + item.KeepReason
			}
			if s.Resumed[item.Ref] {
				row[5] = "✓"
			}
			t.Rows = append(t.Rows, row)
		}
		d.Tables = append(d.Tables, t)
	}
	if len(plan) == 0 && s.Finished() && m.Status.Counts.Objects > 0 {
		d.Tables = append(d.Tables, kit.Table{Title: "Objects", Note: "The list of objects is not kept after a move has ended. Choose an earlier moment to see it."})
	}
	return d
}

func progress(m *v1alpha1.Move) string {
	c := m.Status.Counts
	if c.ToDelete == 0 {
		return fmt.Sprintf("%d objects", c.Objects)
	}
	return fmt.Sprintf("%d/%d created, %d/%d deleted", c.Created, c.Objects, c.Deleted, c.ToDelete)
}

func hints(k *kit.Kit, m *v1alpha1.Move) []string {
	line := func(verb, effect string) string { return k.Hint(m.Namespace, verb, "move", m.Name) + " " + effect }
	lines := []string{line("describe", "shows what happened")}
	if m.Status.FinishedAt != nil {
		return lines
	}
	lines = append(lines, line("watch", "follows it to its end"))
	if m.Status.Phase == mover.PhaseStranded {
		return append(lines, line("decide", "resolves it"))
	}
	if !pastPointOfNoReturn(m) {
		lines = append(lines, line("abort", "rolls it back"))
	}
	return lines
}

func actionsOf(id string, m *v1alpha1.Move) []kit.Action {
	if m.Status.FinishedAt != nil || pastPointOfNoReturn(m) || m.Status.Phase == mover.PhaseRollingBack || m.Status.Phase == mover.PhaseStranded {
		return nil
	}
	return []kit.Action{{Do: "abort", Kind: "move", Namespace: m.Namespace, Name: m.Name, ID: id}}
}

// Err returns nil: Apply returns each error.
func (*Fold) Err() error { return nil }

// Object returns the Move.
func (f *Fold) Object() (name string, object any) { return "move", f.resource() }

// Content returns the state of the move.
func (f *Fold) Content() any { return &f.state }

// Describe returns the description of the move.
func (f *Fold) Describe(v kit.View) []string {
	m := f.resource()
	return v.Describe("Move", m, status(m))
}
