package eventlog

import (
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"
)

// Drops is the aggregate that says which epochs were dropped from the log.
func Drops() Aggregate { return Aggregate{Kind: KindDaemon, ID: "drops"} }

// EpochsDropped: the first epochs of the log are dropped. It is appended when what is kept of them is stored, and before any of them is
// deleted.
type EpochsDropped struct {
	// Through is the number of the last epoch that is dropped, Floor the first sequence from which on the log is whole.
	Through int    `json:"through"`
	Floor   uint64 `json:"floor"`
	// Root is the root of the tree of the commits below the floor, in base64 as in a checkpoint.
	Root string `json:"root"`
	// Kept is the stream with what is kept: so many commits, and tombstones.
	Kept       string `json:"kept"`
	Commits    uint64 `json:"commits"`
	Tombstones uint64 `json:"tombstones"`
	// Archive is the backup that has all of them.
	Archive Archived `json:"archive"`
	Reason  string   `json:"reason"`
}

// Archived tells an archive from every other one: the sequence of its last commit, the root of the tree of all its commits in base64, and when it
// was made. Where it is kept is not in the log.
type Archived struct {
	Last  uint64    `json:"last"`
	Root  string    `json:"root"`
	Taken time.Time `json:"taken"`
}

// DropAbandoned: a drop that ended before it was decided is not decided any more, so that what it made can be removed.
type DropAbandoned struct {
	Kept string `json:"kept"`
}

func (EpochsDropped) isEpochEvent() {}
func (DropAbandoned) isEpochEvent() {}

// longestReason is how many bytes a reason may have.
const longestReason = 1024

// CheckReason says why a text is no reason that is recorded: it is one line of text, which others print.
func CheckReason(reason string) error {
	switch {
	case strings.TrimSpace(reason) == "":
		return errors.New("the reason is empty: say why; it is recorded in the log")
	case len(reason) > longestReason:
		return fmt.Errorf("the reason has %d bytes, may have %d: say it in fewer words", len(reason), longestReason)
	case !utf8.ValidString(reason) || strings.ContainsFunc(reason, func(r rune) bool { return !unicode.IsPrint(r) }):
		return errors.New("the reason has control characters or other characters that cannot be printed: leave them out")
	}
	return nil
}
