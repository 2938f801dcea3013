package remediator_test

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/remediator"
)

//nolint:gochecknoglobals // flags of the test
var (
	worldFaults = flag.Int("worlds.faults", 1, "TestEverySmallWorld: how many faults happen")
	worldDeaths = flag.Int("worlds.deaths", 0, "TestEverySmallWorld: how often the process dies in the middle of a turn, or decides on facts that have just become old; -1 for any number of times")
)

// TestEverySmallWorld searches small clusters exhaustively: every order of turns of the remediator, steps of the owner,
// steps of machines and steps of time, with a bounded number of faults at any moment. It checks the invariants in each
// state. From each state, once the faults end, the desired state must be reached, whether all machines recover or one
// stays dead.
//
// Time is abstract: either half a minute passes, or longer than every timeout. Two states are equal when no later event
// can distinguish them: machines are identified by their order of creation, and times by the timeouts that have
// expired. This makes the search finite.
func TestEverySmallWorld(t *testing.T) {
	for _, c := range smallWorlds() {
		t.Run(c.name, func(t *testing.T) {
			start, s := time.Now(), newSearch(c)
			if wrong := s.run(); wrong != "" {
				t.Fatal(wrong)
			}
			t.Logf("%d faults, %d deaths: %d states, %d transitions, each state settles within %d rounds, in %s",
				*worldFaults, *worldDeaths, len(s.seen), s.transitions, s.longest, time.Since(start).Round(time.Millisecond))
		})
	}
}

// smallWorld is the initial state of an owner.
type smallWorld struct {
	name     string
	setUp    func(*world)
	machines int
}

func smallWorlds() []smallWorld {
	trigger := func(w *world) { w.owner.CertificateTrigger = true }
	replicas := func(w *world) { w.policy.Methods[v1alpha1.MethodRolloutSurge] = false }
	plain := func(w *world) { // OwnerRemediation is the only method
		w.policy.Methods = map[v1alpha1.RepairMethod]bool{v1alpha1.MethodOwnerRemediation: true}
	}
	workers := func(w *world) { w.owner.Kind = string(remediator.Deployment) }
	notices := func(w *world) {
		w.owner.CertificateTrigger = true
		w.policy.Checks.Notices = []remediator.Notice{{Type: v1alpha1.NoticeMachineAnnotation, Key: maintenance, Timed: true, Lead: 10 * time.Minute}}
	}
	return []smallWorld{
		{"one-rollout", trigger, 1},
		{"one-replicas", replicas, 1},
		{"three-rollout", trigger, 3},
		{"three-replicas", replicas, 3},
		{"three-owner", plain, 3},
		{"workers", workers, 2},
		{"one-notice", notices, 1},
		{"three-notices", notices, 3},
		{"one-new", (*world).uninitialize, 1},
	}
}

// search searches breadth first, so that the failures it finds are as short as possible.
type search struct {
	first       *node
	seen        map[digest]struct{}
	settled     map[digest]int
	transitions int
	longest     int // rounds until a state was settled
}

func newSearch(c smallWorld) *search {
	w := newWorld(time.Date(2026, 5, 1, 12, 0, 0, 5e8, time.UTC))
	w.owner.CertificateTrigger, w.cluster.FailureDomains = false, nil
	w.policy.Attempts, w.policy.Limits.PerWindow = 1000, 1000
	w.policy.Limits.Cooldown = time.Minute
	w.policy.Timeouts = remediator.Timeouts{ScaleUp: 4 * time.Minute, Ready: 4 * time.Minute, Removal: 4 * time.Minute}
	w.policy.Checks.NodeStartup = 4 * time.Minute
	for i := range w.policy.Checks.Node {
		w.policy.Checks.Node[i].Timeout = 0
	}
	c.setUp(w)
	for range c.machines {
		if !w.owner.Uninitialized {
			w.add("")
		}
	}
	w.owner.Replicas = int32(c.machines) //nolint:gosec // a handful
	n := &node{faultsLeft: *worldFaults, deaths: *worldDeaths, logf: func(string, ...any) {}}
	n.w, n.desired = w, w.owner.Replicas
	n.state.Apply(remediator.Registered{Owner: w.owner.Owner}, w.now)
	return &search{first: n, seen: make(map[digest]struct{}), settled: make(map[digest]int)}
}

// run visits every state and returns the first violation, or "".
func (s *search) run() string {
	queue := []*node{s.first}
	s.seen[s.first.digest()] = struct{}{}
	for len(queue) > 0 {
		n := queue[0]
		queue[0], queue = nil, queue[1:]
		for _, faultsEnd := range []func(*node) bool{(*node).healed, (*node).faultsOver} {
			c := n.clone()
			if c.faultsLeft = 0; !faultsEnd(c) {
				continue
			}
			if wrong := s.settle(c); wrong != "" {
				return s.describePath(n, wrong, faultsEnd)
			}
		}
		for _, way := range n.edges() {
			s.transitions++
			if way.problem != "" {
				return s.describePath(way.to, way.problem, nil)
			}
			d := way.to.digest()
			if _, known := s.seen[d]; known {
				continue
			}
			s.seen[d] = struct{}{}
			queue = append(queue, way.to)
		}
	}
	return ""
}

// describePath describes how a state is reached, and what happens after the faults end.
func (s *search) describePath(to *node, wrong string, faultsEnd func(*node) bool) string {
	var b strings.Builder
	fmt.Fprintln(&b, wrong)
	n := s.first.clone()
	tell := func(format string, args ...any) { fmt.Fprintf(&b, "  "+format+"\n", args...) }
	for _, move := range to.trail.moves() {
		fmt.Fprintf(&b, "%s %s\n", n.w.now.Format("15:04:05"), move)
		n.logf = tell
		ways := n.edges(move)
		i := slices.IndexFunc(ways, func(w edge) bool { return w.to.trail.move == move })
		if i < 0 {
			fmt.Fprintln(&b, "cannot be told again")
			break
		}
		n = ways[i].to
	}
	if faultsEnd != nil {
		fmt.Fprintln(&b, "--- the faults are over")
		n.logf = tell
		faultsEnd(n)
		clear(s.settled)
		s.settle(n)
	}
	if lines := strings.SplitAfter(b.String(), "\n"); len(lines) > 250 {
		return strings.Join(lines[:250], "") + "..."
	}
	return b.String()
}

// settle plays a fair order of everybody's steps until the desired state is reached.
func (s *search) settle(n *node) string {
	const bound = 80
	var passed []digest
	for round := range bound {
		d := n.digest()
		if more, known := s.settled[d]; known || n.unsettledReason() == "" {
			for i, d := range append(passed, d) {
				s.settled[d] = round - i + more
			}
			s.longest = max(s.longest, round+more)
			return ""
		}
		passed = append(passed, d)
		if wrong := n.playRound(); wrong != "" {
			return wrong
		}
	}
	return "it does not settle: " + n.unsettledReason()
}
