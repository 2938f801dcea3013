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

// Faults describes at which of its writes each process of a daemon with fault points (test/cmd/faultd) is killed. A
// life is the time from the start to the end of such a process.
type Faults struct {
	// Before kills the process before the write is sent, and not after it.
	Before bool
	// Class is move, run, remediation or bookkeeping.
	Class string
	// First is the write at which the first life ends, Step that of each later one. If Before is set, a life makes
	// progress only with a step of two or more.
	First, Step int
	// Growing makes each life end one write later than the one before it. Otherwise a life that always ends at its
	// first claims and statuses would make no progress.
	Growing bool
}

// EveryWrite makes each write the last one of a life.
func EveryWrite(class string) Faults { return Faults{Class: class, First: 1, Step: 1} }

// BeforeEveryWrite makes a life end before each write except the first.
func BeforeEveryWrite(class string) Faults {
	return Faults{Before: true, Class: class, First: 2, Step: 2}
}

// at returns the number of the write at which a life ends.
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

// Point returns the fault point of a life. The first life is 0.
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

// Journal is a file in which the lives of a daemon record their fault points.
type Journal struct{ path string }

// NewJournal returns a Journal in a folder. The environment variable SCUTE_FAULT_JOURNAL passes its path to the daemon.
func NewJournal(dir string) Journal { return Journal{filepath.Join(dir, "writes")} }

// Path returns the path of the file.
func (j Journal) Path() string { return j.path }

// Reached counts the writes that the lives of a daemon reached.
type Reached struct {
	// Writes and Appends count all classes. Appends are writes to the log.
	Writes, Appends int
	// Counted counts the writes of one class that a life counts: those done, or those before which it may end.
	Counted int
	// AppendsDone counts the appends of that class that are in the log.
	AppendsDone int
}

// Read counts the records. Counted and AppendsDone are for the class of the faults.
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

// PassedOver returns a contradiction between the number of kills, the records and the log: a life that continued after
// its fault point, or an append without a fault point. It returns "" if there is none.
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

// Commits counts the commits of the faults' class about some aggregates in the log of a stopped daemon: the claims, or
// all others.
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

// OfKind returns a function that reports whether an aggregate has a kind.
func OfKind(kind eventlog.Kind) func(eventlog.Aggregate) bool {
	return func(a eventlog.Aggregate) bool { return a.Kind == kind }
}
