package pause

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/kube/object"
	"scute.dev/pause/request"
	"scute.dev/view"
)

// Documents returns the Pause as a document, if it is requested.
func (f *Fold) Documents(k *kit.Kit) []kit.Document {
	p := f.resource()
	if p == nil {
		return nil
	}
	d := kit.Document{
		Kind: "pause", Namespace: p.Namespace, Name: p.Name, ID: f.id, Phase: string(p.Status.Phase), Message: p.Status.Message, Next: p.Status.Next,
		Progress: fmt.Sprintf("%d/%d objects", p.Status.Counts.Acknowledged, p.Status.Counts.Objects), Began: "since",
		Commands: hints(k, p), Actions: actions(f.id, p), Details: func() kit.Details { return f.details(p) },
	}
	if p.Status.PhaseSince != nil {
		d.Since = p.Status.PhaseSince.Time
	}
	switch {
	case p.Status.FinishedAt != nil:
		d.End(p.Status.FinishedAt)
	case p.Status.Next != "":
		d.State = kit.Waiting
	}
	return []kit.Document{d}
}

// details returns the phases of the Pause, and the objects that have acknowledged it, sorted by
// cluster.
func (f *Fold) details(p *v1alpha1.Pause) kit.Details {
	d := details(p)
	f.WithState(func(s *request.State) {
		d.Stages = stages(p.Status, s.Late)
		if t := deadlines(s); len(t.Rows) > 0 {
			d.Tables = append([]kit.Table{t}, slices.DeleteFunc(d.Tables, func(other kit.Table) bool { return other.Title == t.Title })...)
		}
		if s.Holder != "" {
			d.Fields = append(d.Fields, kit.Field{Name: "Driven by", Value: s.Holder})
		}
		acknowledged := kit.Table{Title: "Acknowledged objects", Header: []string{"Object", "Cluster", "By", "After"}, Cluster: 1}
		for _, ref := range slices.SortedFunc(maps.Keys(s.Acks), func(a, b object.Ref) int {
			return cmp.Or(cmp.Compare(s.Acks[a].Cluster, s.Acks[b].Cluster), object.Compare(a, b))
		}) {
			ack := s.Acks[ref]
			row := []string{ref.Short(), ack.Cluster, string(ack.How), view.Duration(time.Duration(ack.After).Round(time.Millisecond))}
			if ack.BlockMove {
				row[2] += ", after block-move"
			}
			acknowledged.Rows = append(acknowledged.Rows, row)
		}
		d.Tables = append(d.Tables, acknowledged)
	})
	return d
}

// deadlines returns the objects that a Pause waits for, with their deadlines.
func deadlines(s *request.State) kit.Table {
	t, list, total := kit.Table{Title: "Waiting for", Header: []string{"Object", "Why", "Until"}}, s.Pending.Objects, s.Pending.Total
	if s.Releasing {
		list, total = s.StillPaused, s.StillPausedTotal
	}
	for _, w := range list {
		by, until := s.AcknowledgeBy(w.Ref.GroupKind()), ""
		if s.Releasing {
			by = s.ResumeBy()
		}
		if !by.IsZero() && !s.Finished() {
			until = cli.Second(by)
		}
		t.Rows = append(t.Rows, []string{w.Ref.String(), w.Reason, until})
	}
	if more := total - len(list); more > 0 {
		t.Note = fmt.Sprintf("and %d more", more)
	}
	return t
}

// stages returns the phases of a Pause, and marks how far it has come. late means that the Pause
// was released before all objects had acknowledged it; the third stage then shows a warning.
func stages(status v1alpha1.PauseStatus, late bool) []kit.Stage {
	phase := status.Phase
	path := []v1alpha1.PausePhase{v1alpha1.PausePending, v1alpha1.PausePausing, v1alpha1.PauseAcknowledging, v1alpha1.PauseAcknowledged}
	released := phase == v1alpha1.PauseRestoring || phase == v1alpha1.PauseResuming || phase == v1alpha1.PauseReleased
	silent := released && status.Counts.Pending > 0
	if phase == v1alpha1.PauseTimedOut || silent && late {
		path[2] = v1alpha1.PauseTimedOut
	}
	switch {
	case silent:
		path = path[:3]
	case released:
		path = path[:2]
	}
	path = append(path, v1alpha1.PauseRestoring, v1alpha1.PauseResuming, v1alpha1.PauseReleased)
	sign, as := "▶", cli.Cyan
	switch phase {
	case v1alpha1.PauseTimedOut:
		sign, as = "‖", cli.Yellow
	case v1alpha1.PauseReleased, v1alpha1.PauseAcknowledged:
		sign, as = "✓", cli.Green
	}
	out := kit.Stages(path, slices.Index(path, phase)+1, sign, as)
	if silent {
		out[2].Sign, out[2].Style = "‖", cli.Yellow
	}
	return out
}

func hints(k *kit.Kit, p *v1alpha1.Pause) []string {
	describe := k.Hint(p.Namespace, "describe", "pause", p.Name)
	if p.Status.FinishedAt != nil {
		return []string{describe + " shows what happened"}
	}
	lines := []string{describe + " shows what it waits for"}
	lines = append(lines, k.Hint(p.Namespace, "watch", "pause", p.Name)+" follows it until every object has acknowledged")
	if p.Status.Phase == v1alpha1.PauseRestoring || p.Status.Phase == v1alpha1.PauseResuming {
		return lines
	}
	return append(lines, k.Hint(p.Namespace, "resume", "cluster", p.Name)+" deletes it, which restores the earlier pause state")
}

func actions(id string, p *v1alpha1.Pause) []kit.Action {
	if p.Status.FinishedAt != nil || p.Status.Phase == v1alpha1.PauseRestoring || p.Status.Phase == v1alpha1.PauseResuming {
		return nil
	}
	return []kit.Action{{Do: "delete", Kind: "pause", Namespace: p.Namespace, Name: p.Name, ID: id}}
}

// Err returns why an event cannot be read.
func (f *Fold) Err() error { return f.view.Err(f.id) }

// Object returns the Pause.
func (f *Fold) Object() (name string, object any) { return "pause", f.resource() }

// Content returns the state of the pause.
func (f *Fold) Content() (state any) {
	f.WithState(func(s *request.State) { state = s })
	return state
}

// Describe returns the description of the Pause.
func (f *Fold) Describe(v kit.View) []string {
	if p := f.resource(); p != nil {
		return v.Describe("Pause", p, status(p))
	}
	return nil
}
