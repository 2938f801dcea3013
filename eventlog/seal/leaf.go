package seal

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// Message is one stored commit as it is sealed.
type Message struct {
	Seq     uint64
	Stored  time.Time
	Subject string
	Header  map[string][]string
	Data    []byte
}

// MessageOf is a record as it is sealed. It shares the record's bytes.
func MessageOf(r eventlog.Record) Message {
	return Message{Seq: r.Seq, Stored: r.Stored, Subject: r.Subject(), Header: r.Header(), Data: r.Data()}
}

// Record is the commit that a message holds.
func (m Message) Record() eventlog.Record {
	return eventlog.NewRecord(m.Seq, m.Stored, m.Subject, m.Header, m.Data)
}

// leafVersion begins every leaf. Another encoding gets another one.
const leafVersion = "scute.dev/leaf/v1\n"

// AppendLeaf appends the canonical encoding of a message to b. Numbers are big-endian; lengths and counts have 32 bits.
//
//	"scute.dev/leaf/v1\n"
//	length of the subject, the subject
//	number of header fields, then for each: length of the name, the name, length of the value, the value
//	length of the data, the data
//	time at which the server stored it, in nanoseconds since 1970 (64 bits, signed)
//	sequence (64 bits)
//
// Header fields are in the order of their names' bytes, and the values of one name are in their stored order. The order of
// the names in the store is not kept by NATS clients, so no reader can depend on it.
func AppendLeaf(b []byte, m Message) []byte { return new(encoder).leaf(b, m) }

// encoder encodes messages. It remembers the names of the last header in their order: those of the next one are mostly the same, and to look
// them up takes half the time of putting them in order.
type encoder struct{ names []string }

func (e *encoder) leaf(b []byte, m Message) []byte {
	return binary.BigEndian.AppendUint64(e.content(b, m), m.Seq)
}

// content is a leaf without the sequence.
func (e *encoder) content(b []byte, m Message) []byte {
	b = append(b, leafVersion...)
	b = appendString(b, m.Subject)
	header, ok := e.header(b, m.Header)
	if !ok {
		e.names = slices.AppendSeq(e.names[:0], maps.Keys(m.Header))
		slices.Sort(e.names)
		header, _ = e.header(b, m.Header)
	}
	b = binary.BigEndian.AppendUint32(header, uint32(len(m.Data))) //nolint:gosec // a message has 64 MiB at most
	b = append(b, m.Data...)
	return binary.BigEndian.AppendUint64(b, uint64(m.Stored.UnixNano())) //nolint:gosec // the sign is kept
}

// header appends the fields of a header, if it has the names that are remembered.
func (e *encoder) header(b []byte, header map[string][]string) (_ []byte, ok bool) {
	if len(e.names) != len(header) {
		return nil, false
	}
	count, fields := len(b), 0
	b = binary.BigEndian.AppendUint32(b, 0)
	for _, name := range e.names {
		values, ok := header[name]
		if !ok {
			return nil, false
		}
		for _, value := range values {
			b = appendString(appendString(b, name), value)
		}
		fields += len(values)
	}
	binary.BigEndian.PutUint32(b[count:], uint32(fields)) //nolint:gosec // a header has 64 KiB at most
	return b, true
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s))) //nolint:gosec // a message has 64 MiB at most
	return append(b, s...)
}

// Hasher hashes leaves. Its zero value is ready; it is not safe for concurrent use.
type Hasher struct {
	encoder
	buf []byte
}

// leafPrefix separates leaves from inner nodes (RFC 6962, section 2.1).
const leafPrefix = 0

// Hash is the hash of a message's leaf.
func (h *Hasher) Hash(m Message) tlog.Hash {
	h.buf = h.leaf(append(h.buf[:0], leafPrefix), m)
	return sha256.Sum256(h.buf)
}

// Events decodes the commit's events.
func (m Message) Events() ([]eventlog.Event, error) {
	return eventlog.DecodeEvents(m.Header, m.Data)
}
