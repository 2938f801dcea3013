package seal

import (
	"crypto/sha256"
	"encoding/binary"
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
func AppendLeaf(b []byte, m Message) []byte {
	b = appendContent(b, m)
	return binary.BigEndian.AppendUint64(b, m.Seq)
}

// appendContent is AppendLeaf without the sequence.
func appendContent(b []byte, m Message) []byte {
	var few [16]field // enough for every commit that scute writes
	header, fields := few[:0], 0
	for name, values := range m.Header {
		header, fields = insert(header, field{name, values}), fields+len(values)
	}
	b = append(b, leafVersion...)
	b = appendString(b, m.Subject)
	b = binary.BigEndian.AppendUint32(b, uint32(fields)) //nolint:gosec // a header has 64 KiB at most
	for _, f := range header {
		for _, value := range f.values {
			b = appendString(appendString(b, f.name), value)
		}
	}
	b = binary.BigEndian.AppendUint32(b, uint32(len(m.Data))) //nolint:gosec // a message has 64 MiB at most
	b = append(b, m.Data...)
	return binary.BigEndian.AppendUint64(b, uint64(m.Stored.UnixNano())) //nolint:gosec // the sign is kept
}

// field is a name of a header with its values.
type field struct {
	name   string
	values []string
}

// insert adds a field to some in the order of their names. A header has some ten, for which this is faster than to sort them.
func insert(header []field, f field) []field {
	header = append(header, f)
	i := len(header) - 1
	for ; i > 0 && f.name < header[i-1].name; i-- {
		header[i] = header[i-1]
	}
	header[i] = f
	return header
}

func appendString(b []byte, s string) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(len(s))) //nolint:gosec // a message has 64 MiB at most
	return append(b, s...)
}

// Hasher hashes leaves. Its zero value is ready; it is not safe for concurrent use.
type Hasher struct{ buf []byte }

// leafPrefix separates leaves from inner nodes (RFC 6962, section 2.1).
const leafPrefix = 0

// Hash is the hash of a message's leaf.
func (h *Hasher) Hash(m Message) tlog.Hash {
	h.buf = AppendLeaf(append(h.buf[:0], leafPrefix), m)
	return sha256.Sum256(h.buf)
}

// Events decodes the commit's events.
func (m Message) Events() ([]eventlog.Event, error) {
	return eventlog.DecodeEvents(m.Header, m.Data)
}
