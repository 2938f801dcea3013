package seal

import (
	"cmp"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// Verifier compares the commits of a log with the sealed commits. Call Add for each commit in
// order, then Report.
type Verifier struct {
	want Checkpoint
	// checkpoints contains want and the earlier checkpoints, sorted by size.
	checkpoints []Checkpoint
	tree        *Tree // nil if the leaf hashes are not known

	hasher   Hasher
	edge     edge
	spare    []tlog.Hash
	last     uint64 // the highest sequence that was added
	complete bool   // no sequence up to want was skipped
	found    uint64
	beyond   uint64

	good, bad      uint64 // sizes of the last checkpoint that the commits match, and of the first that they do not match
	holes, changed runs   // sequences without a commit, and sequences whose commit differs from the tree
	outOfOrder     []Finding
}

// NewVerifier returns a Verifier for a checkpoint. Earlier checkpoints of the same log narrow down
// the range of a change. With the tree, which may be nil, the report names the changed commits. The
// tree need not be trusted, because it is compared with the checkpoints.
func NewVerifier(want Checkpoint, earlier []Checkpoint, tree *Tree) *Verifier {
	v := &Verifier{want: want, complete: true, tree: tree}
	for _, c := range earlier {
		if c.LogID == want.LogID && c.Size > 0 && c.Size < want.Size {
			v.checkpoints = append(v.checkpoints, c)
		}
	}
	v.checkpoints = append(v.checkpoints, want)
	slices.SortFunc(v.checkpoints, func(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	return v
}

// Add adds the next commit. It fails only if the tree cannot be read.
func (v *Verifier) Add(r eventlog.Record) error {
	v.found++
	if r.Seq <= v.last || r.Seq == 0 { // only possible in an export
		v.outOfOrder = append(v.outOfOrder, Finding{Kind: kindReordered, Run: Run{r.Seq, r.Seq}, Detail: fmt.Sprintf("it comes after %d", v.last)})
		return nil
	}
	if r.Seq != v.last+1 && v.last < v.want.Size {
		v.complete = false
		v.holes.extend(v.last+1, min(r.Seq-1, v.want.Size))
	}
	v.last = r.Seq
	if r.Seq > v.want.Size {
		v.beyond++
		return nil
	}
	hash := v.hasher.Hash(r)
	if v.complete {
		v.spare = v.edge.add(hash, v.spare)
		v.compare()
	}
	if v.tree == nil || r.Seq > v.tree.Size() {
		return nil
	}
	sealed, err := v.tree.Leaf(r.Seq)
	if err == nil && sealed != hash {
		v.changed.extend(r.Seq, r.Seq)
	}
	return err
}

func (v *Verifier) compare() {
	for _, c := range v.checkpoints {
		switch {
		case c.Size != v.edge.size:
		case c.Root == v.edge.root():
			v.good = c.Size
		case v.bad == 0:
			v.bad = c.Size
		}
	}
}

// Report returns the result of the comparison.
func (v *Verifier) Report() (Report, error) {
	r := Report{LogID: v.want.LogID, Size: v.want.Size, Found: v.found, Beyond: v.beyond, Findings: []Finding{}}
	switch {
	case v.want.Size == 0 || v.complete && v.good == v.want.Size && v.bad == 0:
		r.Findings = append(r.Findings, v.outOfOrder...)
		return r, nil
	case v.complete && v.good == v.want.Size:
		r.Findings = append(r.Findings, Finding{Kind: kindAltered, Run: Run{1, v.bad}, Detail: fmt.Sprintf(
			"the checkpoints at %d and %d are signed with the same key and contradict each other: two histories were signed", v.bad, v.want.Size)})
		return r, nil
	}
	v.holes.extend(v.last+1, v.want.Size)
	known, err := v.verifiedUpTo(&r)
	if err != nil {
		return r, err
	}
	for _, c := range v.changed {
		if c.First <= known {
			r.Findings = append(r.Findings, Finding{Kind: kindChanged, Run: Run{c.First, min(c.Last, known)}})
		}
	}
	r.addFindings(kindMissing, v.holes)
	// The leaf hashes after the sequence known are not verified, so changes after it are not located.
	from := max(v.good, known) + 1
	if v.bad > known && known < v.want.Size {
		r.addFindings(kindAltered, v.holes.gaps(from, v.bad))
		from = v.bad + 1
	}
	r.addFindings(kindUnverified, v.holes.gaps(from, v.want.Size))
	r.Findings = append(r.Findings, v.outOfOrder...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.First, b.First) })
	return r, nil
}

// verifiedUpTo returns the sequence up to which the leaf hashes match the checkpoints.
func (v *Verifier) verifiedUpTo(r *Report) (uint64, error) {
	if v.tree == nil {
		r.Notes = append(r.Notes, "without the leaf hashes, a change is located only between two checkpoints")
		return 0, nil
	}
	var known uint64
	var e edge
	for _, c := range v.checkpoints {
		for e.size < min(c.Size, v.tree.Size()) {
			h, err := v.tree.Leaf(e.size + 1)
			if err != nil {
				return 0, err
			}
			v.spare = e.add(h, v.spare)
		}
		if e.size == c.Size && e.root() == c.Root {
			known = c.Size
		}
	}
	if known < v.want.Size {
		r.Notes = append(r.Notes, fmt.Sprintf("the leaf hashes match the checkpoints up to sequence %d; later ones do not match or are missing", known))
	}
	return known, nil
}
