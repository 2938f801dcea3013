package soak

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"scute.dev/eventlog"
	moves "scute.dev/mover/runner"
	"scute.dev/remediator"
	remediations "scute.dev/remediator/runner"
	runs "scute.dev/workflow/runner"
)

// Book is the content of one log: the views that the daemon has, and what the invariants need. It is folded commit by
// commit and is not safe for concurrent use.
type Book struct {
	Side string
	// Unhealthy reports whether a remediation of a machine is justified at a time. It may be nil.
	Unhealthy func(machine string, at time.Time) bool
	Moves     *moves.Moves
	Runs      *runs.Runs
	Machines  *remediations.Remediations
	// Remedies are in the order in which they began.
	Remedies []Remedy
	// Last is the sequence of the last commit, and Digest the hash of all commits.
	Last   uint64
	Digest [sha256.Size]byte

	catalog *eventlog.Catalog[remediator.Event]
	owners  map[string]remediator.Owner
	active  map[string]int // index of the owner's remedy in progress, by aggregate
}

// NewBook returns an empty Book.
func NewBook(side string) *Book {
	return &Book{
		Side: side, Moves: moves.NewMoves(), Runs: runs.NewRuns(), Machines: remediations.NewRemediations(),
		catalog: remediator.NewCatalog(), owners: map[string]remediator.Owner{}, active: map[string]int{},
	}
}

// Apply folds a commit in, and returns a line for each of its events.
func (b *Book) Apply(r eventlog.Record) ([]string, error) {
	b.Last = r.Seq
	sum := sha256.New()
	sum.Write(b.Digest[:])
	_ = binary.Write(sum, binary.BigEndian, r.Seq) // writing to a hash never fails
	sum.Write([]byte(r.Subject()))
	sum.Write(r.Data())
	sum.Sum(b.Digest[:0])
	for _, apply := range []func(eventlog.Record) error{b.Moves.Apply, b.Runs.Apply, b.Machines.Apply} {
		if err := apply(r); err != nil {
			return nil, fmt.Errorf("log: commit %d of %s cannot be folded in: %w", r.Seq, b.Side, err)
		}
	}
	events, err := r.Events()
	if err != nil {
		return nil, fmt.Errorf("log: commit %d of %s cannot be read: %w", r.Seq, b.Side, err)
	}
	lines := make([]string, 0, len(events))
	for _, e := range events {
		lines = append(lines, line(r, e))
		if r.Aggregate.Kind != eventlog.KindRemediation {
			continue
		}
		fact, err := b.catalog.Decode(e)
		if err != nil {
			return lines, fmt.Errorf("log: commit %d of %s cannot be decoded: %w", r.Seq, b.Side, err)
		}
		b.remedy(r.Aggregate.ID, fact, e.Time)
	}
	return lines, nil
}

// longest is the maximum length of an event's line, in bytes.
const longest = 300

func line(r eventlog.Record, e eventlog.Event) string {
	data := string(e.Data)
	if len(data) > longest {
		data = data[:longest] + "..."
	}
	return fmt.Sprintf("%d %s %s %s", r.Seq, r.Aggregate, strings.TrimPrefix(e.Type, "dev.scute."), data)
}

// EndOfMove reports whether a line is about an event that ends a move, or that is the cause of its end.
func EndOfMove(line string) bool {
	for _, fact := range []string{"refused", "failed", "succeeded", "rolled-back"} {
		if strings.Contains(line, " move."+fact+".v") {
			return true
		}
	}
	return false
}

// remedy records the beginning and the end of remediations.
func (b *Book) remedy(owner string, fact remediator.Event, at time.Time) {
	begin := func(victim remediator.Subject, baseline []remediator.Subject) {
		remedy := Remedy{Cluster: b.owners[owner].Namespace + "/" + b.owners[owner].Cluster, Victim: victim.Name, Begun: at}
		for _, m := range baseline {
			remedy.Baseline = append(remedy.Baseline, m.Name)
		}
		remedy.Spurious = b.Unhealthy != nil && !b.Unhealthy(victim.Name, at)
		b.active[owner] = len(b.Remedies)
		b.Remedies = append(b.Remedies, remedy)
	}
	end := func() {
		if i, ok := b.active[owner]; ok {
			b.Remedies[i].Ended = at
			delete(b.active, owner)
		}
	}
	switch e := fact.(type) {
	case remediator.Registered:
		b.owners[owner] = e.Owner
	case remediator.SurgeRequested:
		begin(e.Machine, e.Baseline)
	case remediator.HandedOver:
		begin(e.Machine, e.Baseline)
	case remediator.Succeeded, remediator.Cancelled:
		end()
	}
}

// Status returns the state of everything in the log, by aggregate. A replay must have the same result.
func (b *Book) Status() (map[string]string, error) {
	state := map[string]string{}
	add := func(name string, status any) error {
		raw, err := json.Marshal(status)
		state[name] = string(raw)
		return err
	}
	for _, id := range b.Moves.IDs() {
		if s, ok := b.Moves.Status(id); ok {
			if err := add("move "+id, s); err != nil {
				return nil, err
			}
		}
	}
	for _, id := range b.Runs.IDs() {
		if s, ok := b.Runs.Status(id); ok {
			if err := add("run "+id, s); err != nil {
				return nil, err
			}
		}
	}
	for i, r := range b.Remedies {
		if err := add(fmt.Sprintf("remedy %d", i), r); err != nil {
			return nil, err
		}
	}
	err := add("phases", b.Machines.Phases())
	return state, err
}

// Same checks the sixth invariant: a replay of the log has the same result as following it across all restarts of the
// daemon.
func Same(followed, replayed *Book) error {
	if followed.Last != replayed.Last || followed.Digest != replayed.Digest {
		return fmt.Errorf("replay: the log of %s was followed to %d (%s) and replayed to %d (%s)", followed.Side,
			followed.Last, hex.EncodeToString(followed.Digest[:4]), replayed.Last, hex.EncodeToString(replayed.Digest[:4]))
	}
	before, err := followed.Status()
	if err != nil {
		return err
	}
	after, err := replayed.Status()
	if err != nil {
		return err
	}
	var differ []string
	for name, state := range before {
		if after[name] != state {
			differ = append(differ, name)
		}
	}
	if len(differ) > 0 || len(before) != len(after) {
		slices.Sort(differ)
		return fmt.Errorf("replay: the log of %s gives another state for %s (%d aggregates, then %d)", followed.Side, strings.Join(differ, ", "), len(before), len(after))
	}
	return nil
}

// Open returns what has begun in the log and not ended. It is empty when all faults are over and everything has
// settled.
func (b *Book) Open() []string {
	var open []string
	for _, id := range b.Moves.IDs() {
		if _, due := b.Moves.Due(id); due {
			open = append(open, "move "+id)
		}
	}
	for phase, n := range b.Machines.Phases() {
		open = append(open, fmt.Sprintf("%d remediations %s", n, phase))
	}
	for _, r := range b.Remedies {
		if r.Ended.IsZero() {
			open = append(open, "the remediation of "+r.Victim)
		}
	}
	slices.Sort(open)
	return open
}
