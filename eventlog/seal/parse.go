package seal

import (
	"bytes"
	"encoding/binary"
	"errors"
	"time"

	"scute.dev/eventlog"
)

// errLeaf is returned for bytes that do not encode a commit.
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

// parser reads fields from the front.
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
