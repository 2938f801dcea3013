package seal

import "fmt"

// Kind is the kind of a difference between a log and its sealed commits.
type Kind string

// The kinds of findings.
const (
	// kindChanged: the commit at the sequence is not the commit that was sealed.
	kindChanged Kind = "changed"
	// kindMissing: there is no commit at the sequence.
	kindMissing Kind = "missing"
	// kindReordered: in an export, a commit follows one with the same or a later sequence.
	kindReordered Kind = "reordered"
	// kindAltered: some of the commits differ from the sealed commits, and it is not known which ones.
	kindAltered Kind = "altered"
	// kindUnverified: these commits cannot be compared with the sealed commits, because other commits
	// are missing.
	kindUnverified Kind = "unverified"
	// Replaced: the log has another ID than the sealed log.
	Replaced Kind = "replaced"
)

// Finding is one difference between a log and its sealed commits.
type Finding struct {
	Kind Kind `json:"kind"`
	Run
	Detail string `json:"detail,omitempty"`
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s %s", f.Kind, f.Run)
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
	// Found is the number of commits that were compared, including those after the checkpoint. Beyond
	// is the number of commits after the checkpoint.
	Found  uint64 `json:"found"`
	Beyond uint64 `json:"beyond"`
	// Findings are the differences between the log and the sealed commits. If there are none, the log
	// is intact.
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

// runs is a set of sequences, stored as sorted ranges with gaps between them.
type runs []Run

// extend adds the sequences from first to last. They must be greater than all sequences of the set.
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

// gaps returns the sequences from first to last that are not in the set.
func (s runs) gaps(first, last uint64) (out runs) {
	for _, r := range s {
		out.extend(first, min(r.First-1, last))
		first = max(first, r.Last+1)
	}
	out.extend(first, last)
	return out
}
