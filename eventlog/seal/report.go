package seal

import (
	"cmp"
	"fmt"
	"slices"
	"sort"
)

// Kind is the kind of a difference between a log and its sealed commits.
type Kind string

// The kinds of findings.
const (
	// Changed: another commit is at the sequence, and the sealed commit was not found.
	Changed Kind = "changed"
	// Missing: the commit that was sealed with the sequence was not found.
	Missing Kind = "missing"
	// Added: a commit that was not sealed is at the sequence, and the sealed commit is elsewhere; or the sequence occurs twice.
	Added Kind = "added"
	// Reordered: the commit at the sequence was sealed with another sequence.
	Reordered Kind = "reordered"
	// Altered: some of the commits differ from the sealed commits, and it is not known which ones.
	Altered Kind = "altered"
	// Unverified: other commits are missing, so these commits cannot be compared with the sealed ones.
	Unverified Kind = "unverified"
	// Replaced: the log has another ID than the sealed log.
	Replaced Kind = "replaced"
)

// Finding is one difference between a log and its sealed commits.
type Finding struct {
	Kind Kind `json:"kind"`
	Run
	// Sealed is the sequence with which the first of the commits was sealed; only for Reordered.
	Sealed uint64 `json:"sealed,omitempty"`
	// Detail is a description.
	Detail string `json:"detail,omitempty"`
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s %s", f.Kind, f.Run)
	if f.Kind == Reordered && f.Sealed != 0 {
		s += fmt.Sprintf(", sealed as %s", Run{f.Sealed, f.Sealed + f.Last - f.First})
	}
	if f.Detail != "" {
		s += ": " + f.Detail
	}
	return s
}

// Report is the outcome of a verification.
type Report struct {
	LogID string `json:"logID"`
	// Size is the number of commits that the checkpoint covers.
	Size uint64 `json:"size"`
	// Found is the number of commits that were found. Beyond is the number of commits after the
	// checkpoint, which the checkpoint does not cover.
	Found  uint64 `json:"found"`
	Beyond uint64 `json:"beyond"`
	// Findings are the differences; none if the log is intact.
	Findings []Finding `json:"findings"`
	// Notes are the reasons why the findings may be incomplete.
	Notes []string `json:"notes,omitempty"`
}

// Intact reports whether the log contains exactly the sealed commits.
func (r Report) Intact() bool { return len(r.Findings) == 0 }

func (r *Report) addFindings(kind Kind, s runs) {
	for _, run := range s {
		r.Findings = append(r.Findings, Finding{Kind: kind, Run: run})
	}
}

// Run is the range of sequences from First to Last.
type Run struct {
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
}

// String returns "7" or "7-9".
func (r Run) String() string {
	if r.First == r.Last {
		return fmt.Sprint(r.First)
	}
	return fmt.Sprintf("%d-%d", r.First, r.Last)
}

// runs is a set of sequences as sorted ranges that do not touch.
type runs []Run

// extend adds sequences after all sequences of the set.
func (s *runs) extend(first, last uint64) {
	if first > last {
		return
	}
	if n := len(*s); n > 0 && (*s)[n-1].Last+1 == first {
		(*s)[n-1].Last = last
		return
	}
	*s = append(*s, Run{first, last})
}

func (s runs) has(seq uint64) bool {
	i := sort.Search(len(s), func(i int) bool { return s[i].Last >= seq })
	return i < len(s) && s[i].First <= seq
}

// count returns the number of sequences.
func (s runs) count() (n uint64) {
	for _, r := range s {
		n += r.Last - r.First + 1
	}
	return n
}

// union returns the sequences that are in a or b.
func union(a, b runs) (out runs) {
	all := slices.Concat(a, b)
	slices.SortFunc(all, func(x, y Run) int { return cmp.Compare(x.First, y.First) })
	for _, r := range all {
		if n := len(out); n > 0 && r.First <= out[n-1].Last+1 {
			out[n-1].Last = max(out[n-1].Last, r.Last)
			continue
		}
		out = append(out, r)
	}
	return out
}

// split returns the sequences that are in a but not in b, and the sequences that are in both.
func split(a, b runs) (only, both runs) {
	j := 0
	for _, r := range a {
		for at := r.First; at <= r.Last; {
			for j < len(b) && b[j].Last < at {
				j++
			}
			if j == len(b) || b[j].First > r.Last {
				only.extend(at, r.Last)
				break
			}
			if b[j].First > at {
				only.extend(at, b[j].First-1)
				at = b[j].First
			}
			end := min(r.Last, b[j].Last)
			both.extend(at, end)
			at = end + 1
		}
	}
	return only, both
}
