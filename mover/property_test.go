package mover_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// TestAnyStory plays random moves: steps succeed, fail, or see only some objects; users abort, processes crash between
// two commits and are replaced, and time passes. It checks invariants that must hold in each of them.
func TestAnyStory(t *testing.T) {
	ends := make(map[mover.Phase]int)
	rapid.Check(t, func(t *rapid.T) {
		p := &player{t: t, now: time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)}
		p.apply(mover.Requested{Spec: mover.Spec{
			Clusters: []string{"a"}, DryRun: rapid.IntRange(0, 5).Draw(t, "dry") == 0, KeepFailed: rapid.Bool().Draw(t, "keep failed"),
			Acknowledge: mover.Duration(time.Minute), Create: mover.Duration(time.Minute), Resume: mover.Duration(time.Minute),
		}})
		p.apply(mover.Claimed{Holder: "one"})
		p.objects = rapid.IntRange(1, 6).Draw(t, "objects")
		for range rapid.IntRange(5, 60).Draw(t, "turns") {
			p.step()
		}
		ends[p.state.Phase]++

		var again mover.State
		for _, r := range p.log {
			again.Apply(r.event, r.at)
		}
		if diff := cmp.Diff(p.state, again); diff != "" {
			t.Fatalf("replayed state differs: %s", diff)
		}
	})
	for _, end := range []mover.Phase{mover.PhaseSucceeded, mover.PhaseRolledBack, mover.PhaseFailed} {
		if ends[end] == 0 {
			t.Errorf("no move ended %s, so the moves are not varied enough (%v)", end, ends)
		}
	}
}

type player struct {
	t        *rapid.T
	now      time.Time
	state    mover.State
	log      []recorded
	links    chain
	objects  int
	verified bool
}

func (p *player) apply(e mover.Event) {
	before := p.state
	if wrong := p.links.check(&p.state, e); wrong != "" {
		p.t.Fatal(wrong)
	}
	p.log = append(p.log, recorded{e, p.now})
	p.state.Apply(e, p.now)
	if _, ok := e.(mover.Verified); ok {
		p.verified = true
	}
	if before.Finished() && p.state.Phase != before.Phase {
		p.t.Fatalf("%s after the end %s", eventText(e), before.Phase)
	}
	p.checkInvariants()
}

func (p *player) checkInvariants() {
	s := &p.state
	if s.Verified() != p.verified && !(s.Spec.DryRun && s.Finished()) {
		p.t.Fatalf("Verified() is %t in %s, but the event was recorded: %t", s.Verified(), s.Phase, p.verified)
	}
	switch step := mover.Next(s); step {
	case mover.DeleteSource, mover.RestorePauses, mover.AwaitResume:
		if !p.verified {
			p.t.Fatalf("%q before Verified", step)
		}
	case mover.None:
		if !s.Finished() && s.Phase != mover.PhaseFailed && s.Phase != mover.PhasePending {
			p.t.Fatalf("nothing to do in %s", s.Phase)
		}
	default:
		if p.verified {
			p.t.Fatalf("%q after Verified", step)
		}
	}
	c := s.Counts
	if c.Acknowledged > c.Objects && len(s.Plan) == 0 || c.Deleted > c.ToDelete || c.Resumed > c.ToResume || c.ToDelete > c.Objects {
		p.t.Fatalf("counts do not fit together: %+v", c)
	}
	if s.Phase == mover.PhaseSucceeded && !s.Spec.DryRun && (c.Created != c.Objects || c.Deleted != c.ToDelete || c.Resumed+s.StillPausedTotal < c.ToResume) {
		p.t.Fatalf("Succeeded with %+v", c)
	}
	if message, _ := mover.Explain(s); message == "" && s.Phase != "" {
		p.t.Fatalf("nothing to say in %s", s.Phase)
	}
}

// step plays one random event.
func (p *player) step() {
	t := p.t
	p.now = p.now.Add(rapid.SampledFrom([]time.Duration{0, time.Second, 20 * time.Second, 6 * time.Minute}).Draw(t, "after"))
	switch rapid.IntRange(0, 19).Draw(t, "what") {
	case 0:
		p.apply(mover.AbortRequested{Reason: "enough"})
	case 1:
		p.apply(mover.Claimed{Holder: "another"})
	}
	if p.decide(mover.Tick{}) > 0 || p.state.Finished() {
		return
	}
	step := mover.Next(&p.state)
	if step == mover.None {
		return
	}
	if rapid.IntRange(0, 7).Draw(t, "fails") == 0 {
		p.decide(mover.StepFailed{Message: "no", Next: "fix it", Final: rapid.Bool().Draw(t, "final")})
		return
	}
	p.decide(p.outcome(step))
}

// decide calls Decide twice and checks that the results are equal; it may store only some of the events, as a crash
// does.
func (p *player) decide(o mover.Outcome) int {
	before := p.state
	events, err := mover.Decide(&p.state, o, p.now)
	again, _ := mover.Decide(&p.state, o, p.now)
	if err != nil {
		p.t.Fatal(err)
	}
	if diff := cmp.Diff(events, again); diff != "" {
		p.t.Fatalf("Decide gives two answers: %s", diff)
	}
	if diff := cmp.Diff(before, p.state); diff != "" {
		p.t.Fatalf("Decide changed the state: %s", diff)
	}
	if p.verified {
		for _, e := range events {
			switch e.(type) {
			case mover.Failed, mover.RollbackStarted, mover.RolledBack, mover.Refused:
				p.t.Fatalf("%s after Verified", eventText(e))
			}
		}
	}
	if len(events) > 1 && rapid.IntRange(0, 9).Draw(p.t, "dies") == 0 {
		// A failure is small, and never separated from its rollback.
		if _, failed := events[len(events)-2].(mover.Failed); !failed {
			events = events[:rapid.IntRange(0, len(events)-1).Draw(p.t, "stored")]
		}
	}
	for _, e := range events {
		p.apply(e)
	}
	return len(events)
}

func (p *player) item(i int) mover.Item {
	r := object.Ref{Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: fmt.Sprintf("a-%d", i)}
	if i == 0 {
		r.Kind, r.Name = "Cluster", "a"
	}
	out := mover.Item{Ref: r, UID: uid(r), Cluster: "a", Level: min(i, 1), PausedByUser: i == 2}
	if i == 3 {
		out.Ref.Group, out.Ref.Kind, out.KeepReason = "", "Secret", "somebody needs it"
	}
	return out
}

// drawObjects draws at least one of the objects that match; all reports whether it drew all of them.
func (p *player) drawObjects(match func(mover.Item) bool) (part []mover.Item, all bool) {
	for i := range p.objects {
		if item := p.item(i); match(item) {
			part = append(part, item)
		}
	}
	n := rapid.IntRange(min(1, len(part)), len(part)).Draw(p.t, "some")
	return part[:n], n == len(part)
}

func (p *player) outcome(step mover.Step) mover.Outcome {
	t, s := p.t, &p.state
	switch step {
	case mover.RunPreflight:
		var out mover.PreflightDone
		for range rapid.IntRange(0, 2).Draw(t, "findings") {
			out.Findings = append(out.Findings, mover.Finding{Severity: rapid.SampledFrom([]mover.Severity{mover.Warning, mover.Warning, mover.Error}).Draw(t, "severity")})
		}
		return out
	case mover.RecordBaseline:
		out := mover.BaselineRead{Objects: make(map[object.Ref]pause.Baseline)}
		for i := range p.objects {
			item := p.item(i)
			if item.KeepReason == "" {
				out.Objects[item.Ref] = pause.Baseline{UID: item.UID}
			}
		}
		out.Roots = []pause.Root{{Ref: p.item(0).Ref, UID: p.item(0).UID, Found: rapid.IntRange(0, 3).Draw(t, "found") == 0}}
		return out
	case mover.PauseSource:
		return mover.Paused{}
	case mover.AwaitAcks:
		waiting := func(item mover.Item) bool { return item.KeepReason == "" && s.Acks[item.Ref] == "" }
		part, all := p.drawObjects(waiting)
		out := mover.AcksRead{New: make(map[object.Ref]pause.Signal), Stable: all && rapid.Bool().Draw(t, "stable")}
		for _, item := range part {
			out.New[item.Ref] = rapid.SampledFrom([]pause.Signal{pause.ByCondition, pause.ByCondition, pause.AlreadyPaused, pause.Assumed}).Draw(t, "signal")
		}
		if !all {
			out.Pending = []mover.ObjectReason{{Ref: p.item(p.objects - 1).Ref, Reason: "condition Paused is False"}}
		}
		return out
	case mover.DraftPlan:
		items, _ := p.drawObjects(func(mover.Item) bool { return true })
		for i := len(items); i < p.objects; i++ {
			items = append(items, p.item(i))
		}
		return mover.Drafted{Items: items}
	case mover.CreateCopies:
		part, _ := p.drawObjects(func(item mover.Item) bool { return s.Created[item.Ref] == "" })
		if len(part) == 0 {
			return mover.AllCreated{}
		}
		out := mover.Created{Objects: make(map[object.Ref]types.UID)}
		for _, item := range part {
			out.Objects[item.Ref] = "there-" + item.UID
			if item.KeepReason != "" && rapid.Bool().Draw(t, "adopted") {
				out.Adopted = append(out.Adopted, item.Ref)
			}
		}
		return out
	case mover.VerifyCopies:
		if rapid.IntRange(0, 4).Draw(t, "unseen") == 0 {
			return mover.CopiesUnacknowledged{Pending: []mover.ObjectReason{{Ref: p.item(0).Ref, Reason: "it is not acknowledged"}}}
		}
		if rapid.IntRange(0, 4).Draw(t, "differs") == 0 {
			return mover.VerifyDone{Differences: []mover.ObjectReason{{Ref: p.item(0).Ref, Reason: "it differs"}}}
		}
		return mover.VerifyDone{}
	case mover.DeleteSource:
		part, _ := p.drawObjects(func(item mover.Item) bool { return item.KeepReason == "" && !s.Deleted[item.Ref] })
		if len(part) == 0 {
			return mover.SourceEmptied{}
		}
		return mover.Deleted{Objects: refs(part)}
	case mover.RestorePauses:
		return mover.PausesRestored{}
	case mover.AwaitResume:
		part, all := p.drawObjects(func(item mover.Item) bool { return s.MustResume(item) && !s.Resumed[item.Ref] })
		out := mover.ResumeRead{New: refs(part)}
		if !all {
			out.Pending = []mover.ObjectReason{{Ref: p.item(p.objects - 1).Ref, Reason: "condition Paused is True"}}
		}
		return out
	case mover.ClearTarget:
		part, _ := p.drawObjects(func(item mover.Item) bool { return s.Created[item.Ref] != "" && !s.Removed[item.Ref] })
		if len(part) == 0 {
			return mover.TargetCleared{}
		}
		return mover.Removed{Objects: refs(part)}
	case mover.RestoreSource:
		return mover.RolledBack{}
	default:
		t.Fatalf("no outcome for step %q", step)
		return nil
	}
}

func refs(items []mover.Item) []object.Ref {
	var out []object.Ref
	for _, item := range items {
		out = append(out, item.Ref)
	}
	return slices.Clip(out)
}
