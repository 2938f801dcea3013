package seal

import (
	"cmp"
	"fmt"
	"slices"
)

// Kind is what became of a commit that was sealed, or of its place.
type Kind string

// The kinds of findings.
const (
	// Changed: another commit is at the sequence, and the one that was sealed there is nowhere.
	Changed Kind = "changed"
	// Missing: the commit that was sealed with the sequence is nowhere.
	Missing Kind = "missing"
	// Added: a commit that was not sealed is at the sequence, and the one that was sealed there is elsewhere; or the sequence is
	// there twice.
	Added Kind = "added"
	// Reordered: the commit at the sequence was sealed with another one.
	Reordered Kind = "reordered"
	// Altered: the commits are not those that were sealed, and it cannot be told which of them are not.
	Altered Kind = "altered"
	// Unverified: it cannot be told whether the commits are those that were sealed, because others are missing.
	Unverified Kind = "unverified"
	// Replaced: the log has another ID than the one that was sealed.
	Replaced Kind = "replaced"
)

// Finding is one difference between a log and what was sealed.
type Finding struct {
	Kind Kind `json:"kind"`
	Run
	// Sealed is the sequence that the first of the commits was sealed with, of Reordered.
	Sealed uint64 `json:"sealed,omitempty"`
	// Detail says more in words.
	Detail string `json:"detail,omitempty"`
}

// String is the finding in words.
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
	// Size is how many commits the checkpoint covers.
	Size uint64 `json:"size"`
	// Found is how many commits were found, Beyond how many of them are after the checkpoint and not covered by it.
	Found  uint64 `json:"found"`
	Beyond uint64 `json:"beyond"`
	// Findings are what is not as it was sealed; none if the log is intact.
	Findings []Finding `json:"findings"`
	// Notes say what limits the findings.
	Notes []string `json:"notes,omitempty"`
}

// Intact says that the log holds exactly what was sealed.
func (r Report) Intact() bool { return len(r.Findings) == 0 }

func (r *Report) find(kind Kind, s runs) {
	for _, run := range s {
		r.Findings = append(r.Findings, Finding{Kind: kind, Run: run})
	}
}

func (r *Report) sort() {
	slices.SortStableFunc(r.Findings, func(a, b Finding) int { return cmp.Compare(a.First, b.First) })
}
