package seal

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// Verifier compares the commits of a log with the sealed commits. Call Add for each commit in order, and then Report.
type Verifier struct {
	want Checkpoint
	// checkpoints are want and earlier checkpoints, by size.
	checkpoints []Checkpoint
	leaves      *leafReader

	hasher   Hasher
	edge     edge
	spare    []tlog.Hash
	last     uint64 // the highest sequence so far
	complete bool   // no sequence was skipped or out of order
	found    uint64
	beyond   uint64

	good, bad          uint64 // the sizes of the last checkpoint that the commits match, and of the first one that they do not match
	holes              runs
	outOfOrderFindings []Finding
	mismatches         search
}

// NewVerifier returns a Verifier for a checkpoint. Earlier checkpoints of the same log narrow down the range of a change. With the tree, which may
// be nil, the report names the changed commits. The tree need not be trusted, because it is compared with the checkpoints.
func NewVerifier(want Checkpoint, earlier []Checkpoint, tree *Tree) *Verifier {
	v := &Verifier{want: want, complete: true}
	for _, c := range earlier {
		if c.LogID == want.LogID && c.Size > 0 && c.Size < want.Size {
			v.checkpoints = append(v.checkpoints, c)
		}
	}
	v.checkpoints = append(v.checkpoints, want)
	slices.SortFunc(v.checkpoints, func(a, b Checkpoint) int { return cmp.Compare(a.Size, b.Size) })
	if tree != nil {
		v.leaves = &leafReader{tree: tree}
		v.mismatches.leaves = v.leaves
	}
	return v
}

// Add adds the next commit. It only fails if the tree cannot be read.
func (v *Verifier) Add(r eventlog.Record) error {
	v.found++
	if r.Seq <= v.last || r.Seq == 0 {
		v.recordOutOfOrder(r)
		return nil
	}
	if r.Seq != v.last+1 {
		v.complete = false
		v.holes.extend(v.last+1, min(r.Seq-1, v.want.Size))
	}
	v.last = r.Seq
	if r.Seq > v.want.Size {
		v.beyond++
		return v.mismatches.checkTrailing(r, v.want.Size)
	}
	hash := v.hasher.Hash(r)
	if v.complete {
		v.spare = v.edge.add(hash, v.spare)
		v.compare()
	}
	if v.leaves == nil || r.Seq > v.leaves.tree.Size() {
		return nil
	}
	sealed, err := v.leaves.leaf(r.Seq)
	if err != nil || sealed == hash {
		return err
	}
	return v.mismatches.add(r, v.want.Size)
}

// compare compares the added commits with the checkpoints of that size.
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

// recordOutOfOrder records a commit that follows a later one, which is only possible in an export.
func (v *Verifier) recordOutOfOrder(r eventlog.Record) {
	f := Finding{Kind: Added, Run: Run{r.Seq, r.Seq}, Detail: fmt.Sprintf("it appears a second time, after %d", v.last)}
	if v.holes.has(r.Seq) {
		v.holes, _ = split(v.holes, runs{{r.Seq, r.Seq}})
		f = Finding{Kind: Reordered, Run: f.Run, Detail: fmt.Sprintf("it comes after %d", v.last)}
		if v.leaves != nil && r.Seq <= v.leaves.tree.Size() {
			if sealed, err := v.leaves.leaf(r.Seq); err == nil && sealed != v.hasher.Hash(r) {
				v.outOfOrderFindings = append(v.outOfOrderFindings, Finding{Kind: Changed, Run: f.Run})
			}
		}
	}
	v.outOfOrderFindings = append(v.outOfOrderFindings, f)
}

// Report returns the result of the comparison.
func (v *Verifier) Report() (Report, error) {
	r := Report{LogID: v.want.LogID, Size: v.want.Size, Found: v.found, Beyond: v.beyond, Findings: []Finding{}}
	switch {
	case v.want.Size == 0 || v.complete && v.good == v.want.Size && v.bad == 0:
		r.Findings = append(r.Findings, v.outOfOrderFindings...)
		return r, nil
	case v.complete && v.good == v.want.Size:
		r.Findings = append(r.Findings, Finding{Kind: Altered, Run: Run{1, v.bad}, Detail: fmt.Sprintf(
			"the checkpoints at %d and %d are signed with the same key and contradict each other: two histories were signed", v.bad, v.want.Size)})
		return r, nil
	}
	v.holes.extend(v.last+1, v.want.Size)
	known, err := v.verifiedUpTo(&r)
	if err != nil {
		return r, err
	}
	if known > 0 {
		if err := v.mismatches.classify(&r, known, v.holes); err != nil {
			return r, err
		}
	}
	rest, _ := split(v.holes, runs{{1, max(known, 1)}})
	if known == 0 {
		rest = v.holes
	}
	r.addFindings(Missing, rest)
	v.addUnlocated(&r, known)
	r.Findings = append(r.Findings, v.outOfOrderFindings...)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.First, b.First) })
	return r, nil
}

// verifiedUpTo returns the sequence up to which the leaf hashes match the checkpoints.
func (v *Verifier) verifiedUpTo(r *Report) (uint64, error) {
	if v.leaves == nil {
		r.Notes = append(r.Notes, "without the leaf hashes, a change is located only between two checkpoints")
		return 0, nil
	}
	var known uint64
	var e edge
	for _, c := range v.checkpoints {
		for e.size < min(c.Size, v.leaves.tree.Size()) {
			h, err := v.leaves.leaf(e.size + 1)
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

// addUnlocated adds findings for the sequences after known, where the leaf hashes are not authentic.
func (v *Verifier) addUnlocated(r *Report, known uint64) {
	from := max(v.good, known) + 1
	switch {
	case known == v.want.Size:
	case v.bad > known:
		r.addFindings(Altered, present(from, v.bad, v.holes))
		r.addFindings(Unverified, present(v.bad+1, v.want.Size, v.holes))
	default:
		r.addFindings(Unverified, present(from, v.want.Size, v.holes))
	}
}

// present returns the sequences from first to last except for holes.
func present(first, last uint64, holes runs) runs {
	if first > last {
		return nil
	}
	only, _ := split(runs{{first, last}}, holes)
	return only
}

// leafReader reads leaf hashes that are near to each other.
type leafReader struct {
	tree  *Tree
	chunk [64 << 10]byte
	start int64 // offset of the chunk in the file
	size  int
}

func (l *leafReader) leaf(seq uint64) (h tlog.Hash, err error) {
	at := tlog.StoredHashIndex(0, int64(seq-1)) * hashSize //nolint:gosec // sequences are far below 2^63
	if at < l.start || at+hashSize > l.start+int64(l.size) {
		l.start = at - at%int64(len(l.chunk)/2)
		if l.size, err = l.tree.file.ReadAt(l.chunk[:], l.start); l.size < int(at-l.start)+hashSize {
			return h, fmt.Errorf("reading the leaf hash of commit %d: %w", seq, errors.Join(err))
		}
	}
	return tlog.Hash(l.chunk[at-l.start:][:hashSize]), nil
}
