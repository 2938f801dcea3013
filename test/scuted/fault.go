package scuted

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// Faults says at which of its writes each life of a daemon with fault points (test/cmd/faultd) is killed.
type Faults struct {
	// Before: the write is not sent. Else it was done.
	Before bool
	// Class is move, run, remediation or bookkeeping.
	Class string
	// First is the write at which the first life ends, Step that of each later one. Before a write, a life gets on only with a
	// step of two or more.
	First, Step int
	// Growing lives get one write further, each than the one before it: one that always dies at its first claims and statuses
	// makes no headway.
	Growing bool
}

// EveryWrite has each write be the last of some life.
func EveryWrite(class string) Faults { return Faults{Class: class, First: 1, Step: 1} }

// BeforeEveryWrite has each write but the first be the one before which some life ends.
func BeforeEveryWrite(class string) Faults {
	return Faults{Before: true, Class: class, First: 2, Step: 2}
}

// at is the number of the write at which a life ends.
func (f Faults) at(life int) int {
	switch {
	case f.Growing:
		return life + 1
	case life == 0:
		return f.First
	default:
		return f.Step
	}
}

// Point is the fault point of a life; the first is 0.
func (f Faults) Point(life int) string {
	when := "after"
	if f.Before {
		when = "before"
	}
	return fmt.Sprintf("%s:%d:%s", when, f.at(life), f.Class)
}

func (f Faults) String() string {
	if f.Growing {
		return fmt.Sprintf("%s, each life one write further", f.Point(0))
	}
	return fmt.Sprintf("%s, then %s", f.Point(0), f.Point(1))
}

// Journal is what the lives of a daemon noted at their fault points, in a file that they share.
type Journal struct{ path string }

// NewJournal makes one in a folder. The environment variable SCUTE_FAULT_JOURNAL names it to the daemon.
func NewJournal(dir string) Journal { return Journal{filepath.Join(dir, "writes")} }

// Path is that of the file.
func (j Journal) Path() string { return j.path }

// Reached is what the lives of a daemon reached.
type Reached struct {
	// Writes and Appends of every class that were reached; appends are those to the log.
	Writes, Appends int
	// Counted are those of one class that a life counts: the ones done, or before which it may end.
	Counted int
	// AppendsDone of that class are in the log.
	AppendsDone int
}

// Read counts what was noted; Counted and AppendsDone are of the class of the faults.
func (j Journal) Read(f Faults) (Reached, error) {
	text, err := os.ReadFile(j.path)
	if err != nil {
		return Reached{}, err
	}
	var r Reached
	for line := range strings.Lines(string(text)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		class, what, _ := strings.Cut(rest, " ")
		isAppend := strings.HasPrefix(what, "APPEND ")
		switch word {
		case "reached":
			r.Writes++
			if isAppend {
				r.Appends++
			}
		case "counted":
			if class == f.Class {
				r.Counted++
			}
		case "done":
			if class == f.Class && isAppend {
				r.AppendsDone++
			}
		}
	}
	return r, nil
}

// PassedOver says what does not fit together of the deaths that were seen, of what the lives noted, and of what the log has: a
// life that continued where it had to end, or an append that no fault point saw. It is "" if all fits.
func (f Faults) PassedOver(deaths int, r Reached, inLog int) string {
	due, rest := 0, r.Counted
	for rest >= f.at(due) {
		rest -= f.at(due)
		due++
	}
	switch {
	case r.Counted == 0:
		return fmt.Sprintf("no write of class %s was reached", f.Class)
	case deaths != due:
		return fmt.Sprintf("%d lives ended at their fault points, want %d: %d writes of class %s were reached, and lives end at %s",
			deaths, due, r.Counted, f.Class, f)
	case inLog < r.AppendsDone || inLog > r.Appends:
		return fmt.Sprintf("the log has %d commits of class %s, and the fault points saw %d of them, of %d tried", inLog, f.Class, r.AppendsDone, r.Appends)
	}
	return ""
}

// bookkeeping is the class of the claims, and of the writes to scute's own resources.
const bookkeeping = "bookkeeping"

// Commits counts what a daemon that has ended left in its log about some aggregates, of the class of the faults: claims, or
// all but the claims.
func (f Faults) Commits(ctx context.Context, logDir string, about func(eventlog.Aggregate) bool) (int, error) {
	log, err := embedded.Open(ctx, embedded.Options{Dir: logDir})
	if err != nil {
		return 0, err
	}
	defer log.Close()
	n := 0
	_, err = log.Replay(ctx, 0, func(r eventlog.Record) error {
		if !about(r.Aggregate) {
			return nil
		}
		events, err := r.Events()
		if err == nil && strings.Contains(events[0].Type, ".claimed.") == (f.Class == bookkeeping) {
			n++
		}
		return err
	})
	return n, err
}

// OfKind are the aggregates of a kind.
func OfKind(kind eventlog.Kind) func(eventlog.Aggregate) bool {
	return func(a eventlog.Aggregate) bool { return a.Kind == kind }
}
