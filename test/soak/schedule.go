package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is one planned fault.
type Fault struct {
	Number int
	Kind   Kind
	// At is when the fault begins, relative to the beginning of all faults. For is its duration, 0 if it is
	// instantaneous.
	At, For time.Duration
	// Where is a cluster ("namespace/name") or a side.
	Where string
	// Pick selects among what exists when the fault begins, for example a machine or a variant.
	Pick uint32
}

func (f Fault) String() string {
	text := fmt.Sprintf("#%d %s on %s", f.Number, f.Kind, f.Where)
	if f.For > 0 {
		text += " for " + f.For.String()
	}
	return text
}

// Places are the targets of faults.
type Places struct {
	// Clusters are never moved and have the form "namespace/name". Roamer is the cluster that is moved.
	Clusters []string
	Roamer   string
	Sides    []string
}

// meanGap is the mean time between two faults. The shortest is zero, the longest twice the mean.
const meanGap = 4 * time.Second

// Plan returns the faults of a duration. The result is the same for the same seed. If only is not empty, faults of
// other kinds are left out. No two faults use the minority of etcd members that a control plane can lose at the same
// time. MajorityOff uses more, and no other fault is planned during it. Before a move the cluster has no faults for
// some time.
func Plan(seed uint64, duration time.Duration, places Places, only ...Kind) []Fault {
	p := &planner{random: rand.New(rand.NewPCG(seed, 0)), places: places, taken: map[string]time.Duration{}} //nolint:gosec // it has to be the same again
	for _, n := range natures() {
		if len(only) == 0 || slices.Contains(only, n.Kind) {
			p.natures = append(p.natures, n)
			p.weights += n.weight
		}
	}
	if len(p.natures) == 0 {
		return nil
	}
	var faults []Fault
	for at := p.upTo(meanGap); at < duration; at += p.upTo(2 * meanGap) {
		if f, ok := p.draw(at, duration); ok {
			faults = append(faults, f)
		}
	}
	faults = calmBeforeMoves(faults)
	for i := range faults {
		faults[i].Number = i + 1
	}
	return faults
}

// calmness is how long a cluster has no faults before it is moved, because a move does not begin while a machine is
// being replaced.
const calmness = 30 * time.Second

// calmBeforeMoves removes the faults that would prevent a move from beginning. Faults that begin after the move are
// kept.
func calmBeforeMoves(faults []Fault) []Fault {
	var moves []Fault
	for _, f := range faults {
		if f.Kind.moves() {
			moves = append(moves, f)
		}
	}
	return slices.DeleteFunc(faults, func(f Fault) bool {
		return !f.Kind.moves() && slices.ContainsFunc(moves, func(m Fault) bool {
			return m.Where == f.Where && f.At <= m.At && f.At+f.For > m.At-calmness
		})
	})
}

type planner struct {
	random  *rand.Rand
	places  Places
	natures []nature
	weights int
	taken   map[string]time.Duration // until when
}

// draw returns the next fault. It returns false if the resource that it uses is blocked, or if its end is after the end
// of all faults.
func (p *planner) draw(at, end time.Duration) (Fault, bool) {
	n := p.nature()
	f := Fault{Kind: n.Kind, At: at, For: n.least + p.upTo(n.most-n.least), Where: p.where(n.at), Pick: p.random.Uint32()}
	f.For = min(f.For, end-at).Truncate(100 * time.Millisecond)
	if n.uses == "" {
		return f, f.Where != ""
	}
	key := n.uses + " of " + f.Where
	if f.Where == "" || p.taken[key] > at {
		return f, false
	}
	p.taken[key] = at + f.For + n.after
	return f, true
}

func (p *planner) nature() nature {
	left := p.random.IntN(p.weights)
	for _, n := range p.natures {
		if left -= n.weight; left < 0 {
			return n
		}
	}
	return p.natures[0]
}

func (p *planner) where(at place) string {
	among := p.places.Sides
	switch at {
	case anyCluster:
		among = append(slices.Clone(p.places.Clusters), p.places.Roamer)
	case homeCluster:
		among = p.places.Clusters
	case roamer:
		among = []string{p.places.Roamer}
	case anySide:
	}
	if len(among) == 0 {
		return ""
	}
	return among[p.random.IntN(len(among))]
}

func (p *planner) upTo(most time.Duration) time.Duration {
	if most <= 0 {
		return 0
	}
	return time.Duration(p.random.Int64N(int64(most))).Truncate(100 * time.Millisecond)
}
