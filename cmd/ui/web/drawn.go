package web

import (
	"net/url"
	"sync"

	"scute.dev/cmd/ui/page"
)

// kept bounds how many drawn parts are kept.
const kept = 16

// drawn keeps what was drawn last, so that many open pages of one thing cost what one does.
type drawn struct {
	mu    sync.Mutex
	parts map[string]*part
}

type part struct {
	mu   sync.Mutex
	seq  uint64
	data []byte
}

func newDrawn() *drawn { return &drawn{parts: make(map[string]*part)} }

// part is the part of a page that changes, at a commit or later.
func (d *drawn) part(site *page.Site, path string, query url.Values, seq uint64) ([]byte, uint64, error) {
	p := d.of(path + "?" + query.Encode())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data != nil && p.seq >= seq {
		return p.data, p.seq, nil
	}
	data, at, err := site.Page(path, query, true)
	if err != nil {
		return nil, 0, err
	}
	p.data, p.seq = data, at
	return data, at, nil
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
