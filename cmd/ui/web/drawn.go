package web

import (
	"net/url"
	"sync"
)

// kept bounds how many drawn parts are kept, and keptEnds for how many rights it is known where the log ends.
const (
	kept     = 16
	keptEnds = 1024
)

// drawn keeps what was drawn last, so that many open pages of one thing cost what one does.
type drawn struct {
	mu    sync.Mutex
	parts map[string]*part
	ends  map[string]*end
}

// end is where a log ends for who has some rights: up to a commit it was looked for, and the last one is that.
type end struct {
	mu         sync.Mutex
	head, last uint64
}

type part struct {
	mu   sync.Mutex
	seq  uint64 // the commit that it is about
	head uint64 // up to which commit the log was looked at
	data []byte
}

func newDrawn() *drawn { return &drawn{parts: make(map[string]*part), ends: make(map[string]*end)} }

// last is the last commit up to head, or one that came since, that may be seen. Where nothing of it is new, nothing is drawn: what others do
// costs an open page next to nothing.
func (d *drawn) last(l look, head uint64) uint64 {
	if l.rights == "" {
		return head
	}
	e := d.end(l.rights)
	e.mu.Lock()
	defer e.mu.Unlock()
	if head > e.head {
		e.last = l.site.Last(head, e.head, e.last)
		e.head = head
	}
	return e.last
}

func (d *drawn) end(rights string) *end {
	d.mu.Lock()
	defer d.mu.Unlock()
	e := d.ends[rights]
	if e == nil {
		if len(d.ends) >= keptEnds {
			clear(d.ends)
		}
		e = &end{}
		d.ends[rights] = e
	}
	return e
}

// part is the part of a page that changes, of the log up to a commit or further. Who may see the same shares it. turn waits until it may be
// drawn; nil does not wait.
func (d *drawn) part(l look, path string, query url.Values, head uint64, turn func() (func(), error)) (data []byte, seq uint64, err error) {
	p := d.of(l.rights + path + "?" + query.Encode())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data != nil && p.head >= head {
		return p.data, p.seq, nil
	}
	done, err := turn()
	if err != nil {
		return nil, 0, err
	}
	defer done()
	data, seq, err = l.site.Page(path, query, true)
	if err != nil {
		return nil, 0, err
	}
	p.data, p.seq, p.head = data, seq, head
	if l.rights == "" { // of what may be seen by some, what came meanwhile may be missing
		p.head = max(head, seq)
	}
	return data, seq, nil
}

func (d *drawn) of(address string) *part {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.parts[address]
	if p == nil {
		if len(d.parts) >= kept {
			clear(d.parts)
		}
		p = &part{}
		d.parts[address] = p
	}
	return p
}
