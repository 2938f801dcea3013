package web

import (
	"net/url"
	"sync"

	"scute.dev/ui/page"
)

// maxParts is the maximum number of cached parts.
const maxParts = 16

// partCache caches rendered parts, so that several open pages of one address are rendered once.
type partCache struct {
	mu    sync.Mutex
	parts map[string]*part
}

type part struct {
	mu   sync.Mutex
	seq  uint64 // commit that the part shows
	data []byte
}

// part returns the changing part of a page, rendered at commit head or later, and the commit that it shows.
func (d *partCache) part(site *page.Site, path string, query url.Values, head uint64) (data []byte, seq uint64, err error) {
	p := d.partFor(path + "?" + query.Encode())
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.data != nil && p.seq >= head {
		return p.data, p.seq, nil
	}
	data, seq, err = site.Page(path, query, true)
	if err != nil {
		return nil, 0, err
	}
	p.data, p.seq = data, seq
	return data, seq, nil
}

func (d *partCache) partFor(address string) *part {
	d.mu.Lock()
	defer d.mu.Unlock()
	p := d.parts[address]
	if p == nil {
		if len(d.parts) >= maxParts {
			clear(d.parts)
		}
		p = &part{}
		d.parts[address] = p
	}
	return p
}
