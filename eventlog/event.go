package eventlog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Kind is the domain an aggregate belongs to: the first subject token after the log's prefix.
type Kind string

// The domains that write to the log. KindDaemon is what the log says about itself.
const (
	KindRun         Kind = "run"
	KindMove        Kind = "move"
	KindRemediation Kind = "remediation"
	KindPause       Kind = "pause"
	KindBackup      Kind = "backup"
	KindDaemon      Kind = "daemon"
)

// Aggregate names one consistency boundary: every decision about it is a commit on its one subject.
type Aggregate struct {
	Kind Kind
	// ID is any non-empty UTF-8 string, for example "fleet/prod". Subject escapes it.
	ID string
}

// Event is one fact in the past tense, small, versioned by its type.
//
// On the wire it is a CloudEvent 1.0; see docs/design/eventlog.md for the mapping.
// No secret may ever be in an event: kubeconfigs, keys and tokens are references.
type Event struct {
	// ID is deterministic from the command that caused the event.
	// Left empty, Append fills it with "<commit id>/<index>".
	ID string
	// Type is "dev.scute.<kind>.<fact>.v<N>".
	Type string
	// Time is when the fact was decided, by the decider's clock.
	Time time.Time
	// Actor is who decided: "daemon/<instance>" or "user/<name>".
	// Only what the daemon wrote names it for certain: see Unverified.
	Actor string
	// Causation is the ID of the event of the same aggregate that this one follows from. Empty: a person asked for it, something was
	// observed, or it is not known.
	Causation string
	// Correlation ties the events of one undertaking across aggregates; may be empty.
	Correlation string
	// Data is the fact itself, JSON.
	Data json.RawMessage
}

// Commit is one decision: one or more events on one aggregate, stored as one message, all or nothing.
type Commit struct {
	Aggregate Aggregate
	// ID is deterministic from the command, so that the same decision tried twice is stored once.
	ID string
	// Expected is the log sequence of the aggregate's last commit that the decision was made on;
	// 0 says that the aggregate must not exist yet.
	Expected uint64
	Events   []Event
}

// IDFor is an ID that is the same for the same facts, of the same actor, on the same state: tried again after an unclear
// answer, it is the same commit. Other facts are another commit, above all when two decisions on one state meet in one
// process: one taken for the other would be a fact that is not in the log.
func (c Commit) IDFor(actor string) string {
	h := sha256.New()
	for _, ev := range c.Events {
		fmt.Fprintf(h, "%s %d ", ev.Type, len(ev.Data))
		h.Write(ev.Data)
	}
	return fmt.Sprintf("%s/%s/%d/%x", c.Aggregate.ID, actor, c.Expected, h.Sum(nil)[:8])
}

// Receipt says where a commit is in the log.
type Receipt struct {
	// Seq is the commit's sequence in the log.
	Seq uint64
	// AlreadyStored says that this very commit (same ID) had been stored by an earlier try.
	AlreadyStored bool
}

// Unverified reports whether the actor of an event is only what a client claimed. A daemon writes the events of daemons ("daemon/...")
// and of resources ("resource/...", whose authors the API server has authenticated), and the listener of an embedded log
// refuses both from clients.
func Unverified(actor string) bool {
	return actor != "" && !strings.HasPrefix(actor, "daemon/") && !strings.HasPrefix(actor, "resource/")
}
