package seal

import "fmt"

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
	// Found is the number of commits that were found. Beyond is the number of them after the checkpoint, which it does not cover.
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
