package seal

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"maps"
	"slices"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

// leafVersion is the prefix of every leaf. It must change with each change of the encoding.
const leafVersion = "scute.dev/leaf/v1\n"

// AppendLeaf appends the canonical encoding of a stored commit to b. Numbers are big-endian;
// lengths and counts have 32 bits.
//
//	"scute.dev/leaf/v1\n"
//	length of the subject, the subject
//	number of header fields, then for each: length of the name, the name, length of the value, the value
//	length of the data, the data
//	time at which the server stored it, in nanoseconds since 1970 (64 bits, signed)
//	sequence (64 bits)
//
// Header fields are sorted by the bytes of their names. The values of one name are in stored order.
// NATS clients do not keep the stored order of the names, so no reader can depend on it.
func AppendLeaf(b []byte, r eventlog.Record) []byte { return new(encoder).leaf(b, r) }

// encoder caches the sorted names of the last header. The next header usually has the same names.
// Looking up the cached names takes half as long as sorting.
type encoder struct{ names []string }

func (e *encoder) leaf(b []byte, r eventlog.Record) []byte {
	b = append(b, leafVersion...)
	b = appendString(b, r.Subject())
	header, ok := e.header(b, r.Header())
	if !ok {
		e.names = slices.AppendSeq(e.names[:0], maps.Keys(r.Header()))
		slices.Sort(e.names)
		header, _ = e.header(b, r.Header())
	}
	b = binary.BigEndian.AppendUint32(header, uint32(len(r.Data()))) //nolint:gosec // a message has 64 MiB at most
	b = append(b, r.Data()...)
	b = binary.BigEndian.AppendUint64(b, uint64(r.Stored.UnixNano())) //nolint:gosec // the sign is kept
	return binary.BigEndian.AppendUint64(b, r.Seq)
}

// header appends the fields of a header. ok is false if the header does not have exactly the cached
// names.
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

// Hash returns the hash of a commit's leaf.
func (h *Hasher) Hash(r eventlog.Record) tlog.Hash {
	h.buf = h.leaf(append(h.buf[:0], leafPrefix), r)
	return sha256.Sum256(h.buf)
}

var errLeaf = errors.New("it is not the encoding of a stored commit")

// ParseLeaf parses a result of AppendLeaf. It refuses every other encoding.
func ParseLeaf(leaf []byte) (eventlog.Record, error) {
	rest, ok := bytes.CutPrefix(leaf, []byte(leafVersion))
	p := parser{remaining: rest, failed: !ok}
	subject := string(p.bytes())
	var header map[string][]string
	if n := p.count(); n > 0 {
		header = make(map[string][]string)
		for range n {
			name := string(p.bytes())
			if p.failed {
				break
			}
			header[name] = append(header[name], string(p.bytes()))
		}
	}
	data := p.bytes()
	stored := time.Unix(0, int64(p.number())).UTC() //nolint:gosec // the sign is kept
	r := eventlog.NewRecord(p.number(), stored, subject, header, data)
	if p.failed || !bytes.Equal(AppendLeaf(nil, r), leaf) {
		return eventlog.Record{}, errLeaf
	}
	return r, nil
}

type parser struct {
	remaining []byte
	failed    bool
}

func (p *parser) next(n uint64) []byte {
	if p.failed = p.failed || n > uint64(len(p.remaining)); p.failed {
		return make([]byte, min(n, 8))
	}
	field := p.remaining[:n]
	p.remaining = p.remaining[n:]
	return field
}

func (p *parser) number() uint64 { return binary.BigEndian.Uint64(p.next(8)) }
func (p *parser) count() uint32  { return binary.BigEndian.Uint32(p.next(4)) }
func (p *parser) bytes() []byte  { return p.next(uint64(p.count())) }
