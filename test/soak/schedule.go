package soak

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// Fault is one thing that is done to the world.
type Fault struct {
	Number int
	Kind   Kind
	// At is when it begins, from the start of the faults; For is how long it lasts, 0 for what happens at once.
	At, For time.Duration
	// Where is a cluster ("namespace/name") or a side.
	Where string
	// Pick chooses among what is there when the fault begins: which machine, which variant.
	Pick uint32
}

func (f Fault) String() string {
	text := fmt.Sprintf("#%d %s on %s", f.Number, f.Kind, f.Where)
	if f.For > 0 {
		text += " for " + f.For.String()
	}
	return text
}

// Places are where faults happen.
type Places struct {
	// Clusters that stay where they are, as "namespace/name"; Roamer is the one that is moved.
	Clusters []string
	Roamer   string
	Sides    []string
}

// gaps between two faults: from none to twice the mean.
const meanGap = 4 * time.Second

// Plan is what happens in a time: pure data, the same for the same seed. Faults of kinds that are not in only are left
// out; an empty list leaves out none. Of what a control plane can spare (a minority of its etcd members) no two faults
// are planned at the same time; MajorityOff takes more, and nothing else is planned beside it. Before a move the cluster is left
// alone for a while.
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

// calmness is for how long nothing happens to a cluster before it is moved: a move refuses to begin while a machine is
// being replaced.
const calmness = 30 * time.Second

// calmBeforeMoves leaves out what would keep a move from beginning. What begins after the move does happen.
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

// draw takes the next fault; false where what it would use is taken, or its end lies behind the end of all.
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
