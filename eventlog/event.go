package eventlog

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Kind is the domain of an aggregate: the first subject token after the log's prefix.
type Kind string

// The domains that write to the log. KindDaemon is for events about daemons.
const (
	KindRun         Kind = "run"
	KindMove        Kind = "move"
	KindRemediation Kind = "remediation"
	KindPause       Kind = "pause"
	KindBackup      Kind = "backup"
	KindDaemon      Kind = "daemon"
)

// Aggregate identifies an aggregate, which is one consistency boundary: every decision about it is
// a commit on its subject.
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
	// Time is when the fact was decided, by the clock of the process that decided it.
	Time time.Time
	// Actor is the author of the decision: "daemon/<instance>" or "user/<name>". It is only certain
	// for events that the daemon wrote: see Unverified.
	Actor string
	// Causation is the ID of the event of the same aggregate that caused this event. It is empty
	// for a person's request, for an observation, or if the cause is not known.
	Causation string
	// Correlation is an ID that related events of several aggregates share; may be empty.
	Correlation string
	// Data is the fact itself, as JSON.
	Data json.RawMessage
}

// Commit is one decision: one or more events on one aggregate, stored as one message, all or nothing.
type Commit struct {
	Aggregate Aggregate
	// ID is deterministic from the command, so that a repeated decision is stored once.
	ID string
	// Expected is the log sequence of the aggregate's last commit when the decision was made; 0 if
	// the aggregate must not exist yet.
	Expected uint64
	Events   []Event
}

// IDFor derives an ID from the facts, the actor and the expected sequence. A commit that is retried
// after an unclear answer gets the same ID. Two different decisions on the same state get different
// IDs, because otherwise the log would report the second one as stored.
func (c Commit) IDFor(actor string) string {
	h := sha256.New()
	for _, ev := range c.Events {
		fmt.Fprintf(h, "%s %d ", ev.Type, len(ev.Data))
		h.Write(ev.Data)
	}
	return fmt.Sprintf("%s/%s/%d/%x", c.Aggregate.ID, actor, c.Expected, h.Sum(nil)[:8])
}

// Receipt is the result of an append.
type Receipt struct {
	Seq uint64
	// AlreadyStored is set if an earlier attempt stored the same commit (same ID).
	AlreadyStored bool
}

// Unverified reports whether the actor of an event is only what a client claimed. The actor is
// proven only if it begins with "daemon/" or "resource/": only a daemon writes such events, and the
// API server has authenticated the authors of resources. The listener of an embedded log refuses
// both from clients.
func Unverified(actor string) bool {
	return actor != "" && !strings.HasPrefix(actor, "daemon/") && !strings.HasPrefix(actor, "resource/")
}
