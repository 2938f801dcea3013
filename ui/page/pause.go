package page

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/pause"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	pauserules "scute.dev/pause"
	"scute.dev/pause/request"
	"scute.dev/ui/feed"
)

// maxAcknowledged is the maximum number of acknowledged objects on a page.
const maxAcknowledged = 200

// Holder is a Pause that holds a cluster.
type Holder struct {
	Chip
	Name, Link string
}

// Awaited is an object that a Pause waits for, why, and its deadline.
type Awaited struct {
	Object, Namespace, Why string
	Until                  time.Time
}

// AcknowledgedObject is an object that acknowledged a pause: by which signal, and how long after the pause was set.
type AcknowledgedObject struct {
	Object, Cluster, Signal string
	After                   time.Duration
	BlockMove               bool
}

type pausePage struct {
	subject
	Selection, Holder string
	Pause             *v1alpha1.Pause
	Phase             Chip
	Stages            []Stage
	Counts            []Count
	// Waits are the objects that the Pause waits for, and MoreWaits the number of omitted ones. Until is the deadline for objects to resume.
	Waits     []Awaited
	MoreWaits int
	Until     time.Time
	// Silent are the objects that had not acknowledged when the pause ended.
	Silent     []Awaited
	MoreSilent int
	// Cluster is the cluster whose objects are shown, "" for all.
	Cluster  string
	Rest     []AcknowledgedObject
	MoreRest int
}

func buildPause(v *view) (any, error) {
	id := v.Query.Get("id")
	f, err := feed.Find[*pause.Fold](v.Snapshot, eventlog.KindPause, id)
	if err != nil {
		return nil, err
	}
	r := f.Pause()
	if r == nil {
		return nil, fmt.Errorf("%w: pause/%s was not requested up to commit %d", feed.ErrNotFound, id, v.Seq)
	}
	p := pausePage{Selection: pause.Selection(r), Pause: r, Phase: chip(r.Status.Phase), Cluster: v.Query.Get("cluster")}
	v.Title = "pause " + r.Name
	if c := r.Status.Counts; c.Objects > 0 {
		p.Counts = []Count{{"Acknowledged", c.Acknowledged, c.Objects}}
	}
	f.WithState(func(s *request.State) {
		p.Holder = s.Holder
		p.Stages = pauseStages(r.Status, s.Late)
		p.setAwaited(s)
		p.setAcknowledged(s)
	})
	p.subject, err = v.about(pause.Hints(v.site.kit, r), pause.Actions(id, r))
	return p, err
}

// pauseStages returns the phases of a Pause, and how far it has come. If it was released before it was acknowledged, the third phase has a warning.
func pauseStages(status v1alpha1.PauseStatus, late bool) (out []Stage) {
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
	n := slices.Index(path, phase)
	for i, one := range path {
		s := Stage{Chip: Chip{Tone{"idle", "·"}, string(one)}}
		switch {
		case i == 2 && silent, i == n && one == v1alpha1.PauseTimedOut:
			s.Tone = toneOf(string(v1alpha1.PauseTimedOut))
		case i < n, i == n && (one == v1alpha1.PauseReleased || one == v1alpha1.PauseAcknowledged):
			s.Tone = Tone{"ok", "✓"}
		case i == n:
			s.Tone = Tone{"busy", "▶"}
		}
		out = append(out, s)
	}
	return out
}

// setAwaited sets the objects that have not acknowledged the pause or, while it is released, have not resumed.
func (p *pausePage) setAwaited(s *request.State) {
	pending := awaitedObjects(s.Pending.Objects)
	if s.Releasing {
		p.Silent, p.MoreSilent = pending, s.Pending.Total-len(pending)
		p.Waits, p.MoreWaits = awaitedObjects(s.StillPaused), s.StillPausedTotal-len(s.StillPaused)
		if !s.Finished() {
			p.Until = s.ResumeBy()
		}
		return
	}
	for i, w := range s.Pending.Objects {
		pending[i].Until = s.AcknowledgeBy(w.Ref.GroupKind())
	}
	p.Waits, p.MoreWaits = pending, s.Pending.Total-len(pending)
}

func awaitedObjects(list []pauserules.PendingObject) (out []Awaited) {
	for _, w := range list {
		out = append(out, Awaited{Object: w.Ref.Short(), Namespace: w.Ref.Namespace, Why: w.Reason})
	}
	return out
}

// setAcknowledged sets the acknowledged objects, sorted by cluster.
func (p *pausePage) setAcknowledged(s *request.State) {
	refs := slices.Collect(maps.Keys(s.Acks))
	if p.Cluster != "" {
		refs = slices.DeleteFunc(refs, func(ref object.Ref) bool { return s.Acks[ref].Cluster != p.Cluster })
	}
	slices.SortFunc(refs, func(a, b object.Ref) int {
		return cmp.Or(cmp.Compare(s.Acks[a].Cluster, s.Acks[b].Cluster), object.Compare(a, b))
	})
	p.MoreRest = max(0, len(refs)-maxAcknowledged)
	for _, ref := range refs[:min(len(refs), maxAcknowledged)] {
		ack := s.Acks[ref]
		p.Rest = append(p.Rest, AcknowledgedObject{Object: ref.Short(), Cluster: ack.Cluster, Signal: string(ack.How), After: time.Duration(ack.After), BlockMove: ack.BlockMove})
	}
}

// holders returns the unfinished Pauses by the clusters that they hold (namespace/name).
func (v *view) holders() map[string][]Holder {
	by := make(map[string][]Holder)
	for a, f := range feed.All[*pause.Fold](v.Snapshot) {
		f.WithState(func(s *request.State) {
			if s.Finished() {
				return
			}
			h := Holder{Chip: chip(s.Phase), Name: s.Spec.Name, Link: v.link(a)}
			for _, root := range s.Roots {
				name := root.Ref.Namespace + "/" + root.Ref.Name
				by[name] = append(by[name], h)
			}
		})
	}
	return by
}
