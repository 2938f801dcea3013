package page

import (
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	moves "scute.dev/cmd/ctl/move"
	"scute.dev/eventlog"
	"scute.dev/mover"
	"scute.dev/ui/feed"
)

// Stage is a phase in the sequence of a move or a remediation.
type Stage struct {
	Chip
	// Return is set for the last phase before the point of no return.
	Return bool
}

// Count is the progress of a number of objects.
type Count struct {
	Name     string
	Done, Of int
}

// maxObjects is the maximum number of objects of a level on a page.
const maxObjects = 100

// Level contains the objects whose owners are in previous levels. More is the number of omitted objects.
type Level struct {
	Objects   []Object
	All, More int
}

// Object is an object of a plan: the signal of its acknowledgement, and on which clusters it exists.
type Object struct {
	Name, Namespace, Cluster, Keep string
	Signal                         string
	Created, Deleted, Resumed      bool
}

type movePage struct {
	subject
	Move   *v1alpha1.Move
	Phase  Chip
	Since  time.Time
	Stages []Stage
	Counts []Count
	// Cluster is the cluster whose objects are shown, "" for all.
	Cluster string
	Levels  []Level
	Dropped bool // the log dropped the objects when the move ended
	Holder  string
}

func move(v *view) (any, error) {
	id := v.Query.Get("id")
	m, err := feed.Find[*moves.Fold](v.Snapshot, eventlog.KindMove, id)
	if err != nil {
		return nil, err
	}
	r := m.Resource()
	p := movePage{Move: r, Phase: chip(r.Status.Phase), Since: m.State.PhaseSince, Holder: m.State.Holder, Stages: stages(r), Counts: counts(r), Cluster: v.Query.Get("cluster")}
	v.Title = "move " + r.Name
	p.Levels = levels(&m.State, p.Cluster)
	p.Dropped = len(p.Levels) == 0 && m.State.Finished() && r.Status.Counts.Objects > 0
	p.subject, err = v.about(moves.Hints(v.site.kit, r), moves.Actions(id, r))
	return p, err
}

// stages returns the phases of a successful move, and how far this move has come.
func stages(m *v1alpha1.Move) (out []Stage) {
	path := moves.Path(m)
	n, there := moves.Reached(m, path)
	for i, phase := range path {
		s := Stage{Chip: Chip{Tone{"idle", "·"}, string(phase)}, Return: phase == mover.PhaseVerified}
		switch {
		case i < n-1, i == n-1 && m.Status.Phase == mover.PhaseSucceeded:
			s.Tone = Tone{"ok", "✓"}
		case i == n-1 && there:
			s.Tone = Tone{"busy", "▶"}
		case i == n-1:
			s.Tone = Tone{"bad", "✗"}
		}
		out = append(out, s)
	}
	return out
}

func counts(m *v1alpha1.Move) (out []Count) {
	c := m.Status.Counts
	for _, one := range []Count{
		{"Acknowledged", c.Acknowledged, max(c.Acknowledged, c.Objects)}, {"Created", c.Created, c.Objects}, {"Deleted", c.Deleted, c.ToDelete}, {"Resumed", c.Resumed, c.ToResume},
	} {
		if one.Of > 0 {
			out = append(out, one)
		}
	}
	return out
}

// levels returns the objects of the plan, or of one cluster, owners first.
func levels(s *mover.State, cluster string) (out []Level) {
	plan := s.Plan
	if len(plan) == 0 {
		plan = s.Draft
	}
	for _, items := range mover.Levels(plan) {
		if cluster != "" {
			items = slices.DeleteFunc(items, func(item mover.Item) bool { return item.Cluster != cluster })
		}
		level := Level{All: len(items), More: max(0, len(items)-maxObjects)}
		for _, item := range items[:level.All-level.More] {
			_, created := s.Created[item.Ref]
			level.Objects = append(level.Objects, Object{
				Name: item.Ref.Short(), Namespace: item.Ref.Namespace, Cluster: item.Cluster, Keep: item.KeepReason, Signal: string(s.Acks[item.Ref]),
				Created: created, Deleted: s.Deleted[item.Ref], Resumed: s.Resumed[item.Ref],
			})
		}
		out = append(out, level)
	}
	return out
}
