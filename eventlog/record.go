package eventlog

import (
	"crypto/sha256"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Record is one stored commit. Parts that few readers need are decoded on request.
type Record struct {
	// Seq is the commit's sequence in the log: 1, 2, 3, ... without gaps.
	Seq uint64
	// Stored is when the server stored the commit, by the server's clock.
	Stored time.Time
	// Aggregate is the aggregate of the commit. It is zero for a message on a subject that Append never uses.
	Aggregate Aggregate
	// CommitID is Commit.ID. It is empty for a message that Append did not write.
	CommitID string

	subject string
	header  nats.Header
	data    []byte
}

// Fingerprint returns a hash that differs from that of every other commit, including a commit with
// the same ID in another log.
func (r Record) Fingerprint() string {
	s := sha256.New()
	fmt.Fprintf(s, "%d %d %s %s\n", r.Seq, r.Stored.UnixNano(), r.subject, r.CommitID)
	s.Write(r.data)
	return fmt.Sprintf("%x", s.Sum(nil))
}

// Types returns the types of the commit's events in order, from the headers alone. It is empty for
// a message that Append did not write.
func (r Record) Types() []string {
	if t := headerValue(r.header, "ce-type"); t != "" {
		return []string{percentDecode(t)}
	}
	if t := headerValue(r.header, headerTypes); t != "" {
		return unpackTypes(t)
	}
	return nil
}

// Events decodes the commit's events. The Data of an event is not decoded: its bytes are shared
// with the record and must not be altered.
func (r Record) Events() ([]Event, error) {
	events, err := decode(r.header, r.data)
	if err != nil {
		return nil, fmt.Errorf("decoding commit %d on %s: %w", r.Seq, r.subject, err)
	}
	return events, nil
}

// CloudEvents returns the commit's events in the form for other programs, with the commit's
// sequence and the ID of the log.
func (r Record) CloudEvents(logID string) ([]CloudEvent, error) {
	events, err := r.Events()
	if err != nil {
		return nil, err
	}
	out := make([]CloudEvent, len(events))
	for i, e := range events {
		out[i] = e.cloudEvent(r.Aggregate, r.subject)
		out[i].Sequence, out[i].LogID = strconv.FormatUint(r.Seq, 10), logID
	}
	return out, nil
}

// Subject returns the subject of the commit.
func (r Record) Subject() string { return r.subject }

// Header returns the stored header of the message, which seals and exports use. It must not be altered.
func (r Record) Header() map[string][]string { return r.header }

// Data returns the stored payload of the message. It must not be altered.
func (r Record) Data() []byte { return r.data }

// previous returns the sequence of the aggregate's previous commit. The writer expected this
// sequence, and the server checked it.
func (r Record) previous() (uint64, bool) {
	n, err := strconv.ParseUint(headerValue(r.header, jetstream.ExpectedLastSubjSeqHeader), 10, 64)
	return n, err == nil
}

// IsFirst reports whether the commit is the first one of its aggregate. It also returns true if the
// commit's header does not name a previous commit.
func (r Record) IsFirst() bool {
	n, ok := r.previous()
	return !ok || n == 0
}

// NewRecord returns a commit that was read from a log or an export.
func NewRecord(seq uint64, stored time.Time, subject string, header map[string][]string, data []byte) Record {
	r := Record{Seq: seq, Stored: stored, CommitID: commitID(header), subject: subject, header: header, data: data}
	// If the subject cannot be parsed, Aggregate is zero: the commit belongs to no aggregate and must
	// not stop one.
	r.Aggregate, _ = parseSubject(subject)
	return r
}

func fromDelivery(m jetstream.Msg) (Record, error) {
	md, err := m.Metadata()
	if err != nil {
		return Record{}, fmt.Errorf("reading a delivered message's metadata: %w", err)
	}
	return NewRecord(md.Sequence.Stream, md.Timestamp, m.Subject(), m.Headers(), m.Data()), nil
}
