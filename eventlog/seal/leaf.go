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

// Message is the sealed form of one stored commit.
type Message struct {
	Seq     uint64
	Stored  time.Time
	Subject string
	Header  map[string][]string
	Data    []byte
}

// MessageOf returns the sealed form of a record. It shares the record's bytes.
func MessageOf(r eventlog.Record) Message {
	return Message{Seq: r.Seq, Stored: r.Stored, Subject: r.Subject(), Header: r.Header(), Data: r.Data()}
}

// Record returns the commit of a message.
func (m Message) Record() eventlog.Record {
	return eventlog.NewRecord(m.Seq, m.Stored, m.Subject, m.Header, m.Data)
}

// leafVersion is the prefix of every leaf. Each change of the encoding needs another version.
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
// Header fields are sorted by the bytes of their names, and the values of one name are in stored order. NATS clients do not keep the stored order
// of the names, so no reader can depend on it.
func AppendLeaf(b []byte, m Message) []byte { return new(encoder).leaf(b, m) }

// encoder encodes messages. It caches the sorted names of the last header, because the next header mostly has the same names, and finding them in
// it costs half the time of sorting.
type encoder struct{ names []string }

func (e *encoder) leaf(b []byte, m Message) []byte {
	return binary.BigEndian.AppendUint64(e.content(b, m), m.Seq)
}

// content appends a leaf without the sequence.
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

// header appends the fields of a header if it has the cached names.
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

// Hasher hashes leaves. The zero value is ready to use. It is not safe for concurrent use.
type Hasher struct {
	encoder
	buf []byte
}

// leafPrefix separates leaves from inner nodes (RFC 6962, section 2.1).
const leafPrefix = 0

// Hash returns the hash of a message's leaf.
func (h *Hasher) Hash(m Message) tlog.Hash {
	h.buf = h.leaf(append(h.buf[:0], leafPrefix), m)
	return sha256.Sum256(h.buf)
}

// Events decodes the commit's events.
func (m Message) Events() ([]eventlog.Event, error) {
	return eventlog.DecodeEvents(m.Header, m.Data)
}
