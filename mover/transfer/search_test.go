package transfer

import (
	"cmp"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// death is the state after a crash: the content of both clusters, and the events of the log.
type death struct {
	src, dst []byte
	events   []mover.Event
}

// search is a move between two clusters that is interrupted, and resumed with fewer events.
type search struct {
	*fakes
	source, target *kube.Cluster

	mu        sync.Mutex // both sides are requested concurrently
	writes    int
	dieBefore int // the write before which it crashes, counted from 0; negative is never
	dead      bool
}

func newSearch(t *testing.T) *search {
	t.Helper()
	f := moved(t, mover.AllAcknowledged{})
	f.dst.drop(f.cluster)
	f.dst.drop(f.machine)
	s := &search{fakes: f, source: f.src.cluster(t, "source"), target: f.dst.cluster(t, "target")}
	for _, api := range []*fakeAPI{f.src, f.dst} {
		api.hook = func(r *http.Request) {
			if writes(r) {
				s.checkSafe()
			}
		}
		api.deny = func(r *http.Request) string {
			s.mu.Lock()
			defer s.mu.Unlock()
			if s.dead = s.dead || s.dieBefore >= 0 && writes(r) && s.writes == s.dieBefore; s.dead {
				return "the process is dead"
			}
			if writes(r) {
				s.writes++
			}
			return ""
		}
	}
	return s
}

func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.Path, "selfsubject")
}

// runUntilDeath runs the move until it crashes before a write. It returns false if the move ended before that.
func (s *search) runUntilDeath(before int) (death, bool) {
	s.process()
	s.dieBefore = before
	var left death
	for !s.isDead() {
		if mover.Next(s.state) == mover.None {
			return left, false
		}
		left.events = slices.Clone(s.events) // the last step's events are not in the log
		s.controllers()
		s.step()
	}
	left.src, left.dst = stored(s.src), stored(s.dst)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dieBefore, s.dead = -1, false
	return left, true
}

func (s *search) isDead() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.dead
}

// process starts a new process, which knows only the log.
func (s *search) process() {
	s.transfer = &Transfer{ID: moveID, Source: s.source, Workers: 1, Dial: func(context.Context, mover.Spec) (*kube.Cluster, error) { return s.target, nil }}
}

func stored(api *fakeAPI) []byte {
	raw, _ := json.Marshal(api.objects)
	return raw
}

func restore(api *fakeAPI, raw []byte) {
	api.objects = make(map[string]obj)
	_ = json.Unmarshal(raw, &api.objects)
}

// restart restores both clusters and resumes the move with the first events of the log, or with an
// empty log if known is
// 0. A log without the plan counts as lost for the move, as in `scutectl log reconcile`.
func (s *search) restart(left death, known int) {
	restore(s.src, left.src)
	restore(s.dst, left.dst)
	spec := s.state.Spec
	*s.state, s.events = mover.State{}, nil
	for _, e := range left.events[:known] {
		s.apply(e)
	}
	switch {
	case known == 0:
		s.apply(mover.Requested{Spec: spec, Home: mover.Home{Log: "another"}})
		s.apply(mover.LogLost{Log: logID})
	case !s.state.Verified() && !s.state.Posted && known < len(left.events):
		s.apply(mover.LogLost{Log: s.state.MarkLog})
	}
	s.apply(mover.Claimed{Holder: "two"})
	s.process()
}

// runUntilIdle runs the move until it has ended, or until nothing changes any more. The clock advances quickly.
func (s *search) runUntilIdle() {
	for range 40 {
		events, writes := len(s.events), s.writes
		for range 3 {
			if mover.Next(s.state) == mover.None {
				return
			}
			s.now = s.now.Add(2 * time.Minute)
			s.controllers()
			s.step()
		}
		s.checkSafe()
		if events == len(s.events) && writes == s.writes {
			return
		}
	}
}

// controllers sets condition Paused on both sides, as the controllers of Cluster API do.
func (s *search) controllers() {
	for _, api := range []*fakeAPI{s.src, s.dst} {
		cluster := api.get(s.cluster)
		if cluster == nil {
			continue
		}
		status := "False"
		if object.Observe(cluster).Cluster.Paused {
			status = "True"
		}
		for _, ref := range []object.Ref{s.cluster, s.machine} {
			if api.get(ref) != nil {
				api.merge(ref, obj{"status": obj{"conditions": []any{obj{"type": "Paused", "status": status}}}})
			}
		}
	}
}

// checkSafe checks that each object is complete on at least one side, and that the Cluster is
// active on at most one side.
func (s *search) checkSafe() {
	whole := func(api *fakeAPI, ref object.Ref) bool {
		u := api.get(ref)
		return u != nil && u.GetDeletionTimestamp() == nil && !isReleased(u)
	}
	active := func(api *fakeAPI) bool {
		u := api.get(s.cluster)
		return u != nil && !object.Observe(u).Cluster.Paused
	}
	for _, ref := range []object.Ref{s.cluster, s.machine} {
		if !whole(s.src, ref) && !whole(s.dst, ref) {
			s.t.Errorf("%s is whole on neither side", ref)
		}
	}
	if active(s.src) && active(s.dst) {
		s.t.Error("the Cluster is active on both sides")
	}
}

// hasEnded reports whether the move has ended, and then checks that everything is on one side and active there.
func (s *search) hasEnded() bool {
	for phase, sides := range map[mover.Phase][2]*fakeAPI{mover.PhaseSucceeded: {s.dst, s.src}, mover.PhaseRolledBack: {s.src, s.dst}} {
		if s.state.Phase != phase {
			continue
		}
		for _, ref := range []object.Ref{s.cluster, s.machine} {
			s.checkExists(sides[0], ref)
			if sides[1].get(ref) != nil && !s.state.Abandon { // an abandoned target is not changed: its copies stay paused
				s.t.Errorf("%s: %s is left on the other side", phase, ref)
			}
		}
		s.checkPaused(sides[0], s.cluster, false)
		return true
	}
	return false
}

// operatorEvents returns the commands of a user for an unfinished move.
func operatorEvents() map[string]mover.Event {
	return map[string]mover.Event{
		"nothing": nil, "resolve --back": mover.Resolved{Direction: mover.Back}, "resolve --forward": mover.Resolved{Direction: mover.Forward},
		"abort": mover.AbortRequested{}, "abandon": mover.TargetAbandoned{},
	}
}

// applyCommand runs a user's command if the move accepts it now.
func (s *search) applyCommand(word mover.Event) {
	_, resolves := word.(mover.Resolved)
	if word == nil || s.state.Finished() || resolves && !s.state.TransientFailure.Stranded && s.state.Lost == nil {
		return
	}
	s.apply(word)
}

// deathShares is the number of runs that cover all cases. Each run tests one share, numbered by ROTATION as in the
// suites on the real stack, or all of them with ROTATION=all.
const deathShares = 12

// shard returns a function that reports whether this run tests a case.
func shard(t *testing.T) (takes func(i int) bool) {
	t.Helper()
	env := os.Getenv("ROTATION")
	if env == "all" {
		return func(int) bool { return true }
	}
	n, err := strconv.Atoi(cmp.Or(env, "1"))
	if err != nil || n < 1 {
		t.Fatalf("ROTATION is %q, want a number of at least 1, or all", env)
	}
	first := (n - 1) % deathShares
	t.Logf("rotation %d of %d: one in %d of the crashes and logs; `make test-full` runs all", first+1, deathShares, deathShares)
	return func(i int) bool { return i%deathShares == first }
}

// TestEveryDeathAndEveryLog interrupts a move before each of its writes, and resumes it with each earlier log and with
// an empty one, with each command of a user, at once and after a wait. An object must never be lost, nor a Cluster
// active on both sides, and in each case some command must end the move with everything on one side.
func TestEveryDeathAndEveryLog(t *testing.T) {
	takes, i := shard(t), 0
	for before := 0; ; before++ {
		s := newSearch(t)
		left, died := s.runUntilDeath(before)
		if !died {
			if before < 8 {
				t.Errorf("the move has only %d writes", before)
			}
			return
		}
		acknowledged := slices.IndexFunc(left.events, func(e mover.Event) bool { _, is := e.(mover.AllAcknowledged); return is }) + 1
		for _, known := range append([]int{0}, sequence(acknowledged, len(left.events))...) {
			if i++; !takes(i) {
				continue
			}
			var ends []string
			for _, word := range slices.Sorted(maps.Keys(operatorEvents())) {
				for _, early := range []bool{true, false} {
					s.restart(left, known)
					if early {
						s.applyCommand(operatorEvents()[word])
					}
					s.runUntilIdle()
					s.applyCommand(operatorEvents()[word])
					s.runUntilIdle()
					if s.hasEnded() {
						ends = append(ends, word)
					}
					if t.Failed() {
						t.Fatalf("crash before write %d, log with %d of %d events, %q (early: %t): %s, %q", before, known, len(left.events), word, early, s.state.Phase, s.state.TransientFailure.Message)
					}
				}
			}
			if len(ends) == 0 {
				message, next := mover.Explain(s.state)
				t.Errorf("crash before write %d, log with %d of %d events: no end: message %q, next %q", before, known, len(left.events), message, next)
			}
		}
	}
}

func sequence(from, to int) (list []int) {
	for i := from; i <= to; i++ {
		list = append(list, i)
	}
	return list
}
