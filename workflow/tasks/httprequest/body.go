package httprequest

import (
	"bytes"
	"errors"
	"io"

	"scute.dev/internal/redact"
)

// body is what a task keeps of an answer. Many tasks read one at a time, from servers of anybody's: they keep no more than can become an output.
type body struct {
	// beginning is up to httpBodyOutput bytes of it; cut says that there were more.
	beginning []byte
	cut       bool
	// found says that the text is in the first httpBodyLimit bytes.
	found bool
}

// readBody reads httpBodyLimit bytes at most, and looks for a text in them. Without one it reads as much: a server may be at work until it was read.
func readBody(from io.Reader, text string) (*body, error) {
	const part = 4 << 10
	b := &body{found: text == ""}
	from = io.LimitReader(from, httpBodyLimit)
	wanted := []byte(text)
	window := make([]byte, 0, len(wanted)+part) // the last part, after as much of the one before as the text may begin in
	for {
		n, err := from.Read(window[len(window):cap(window)])
		read := window[len(window) : len(window)+n]
		room := min(n, httpBodyOutput-len(b.beginning))
		b.beginning, b.cut = append(b.beginning, read[:room]...), b.cut || room < n
		window = window[:len(window)+n]
		b.found = b.found || bytes.Contains(window, wanted)
		window = window[:copy(window, window[max(0, len(window)-len(wanted)):])]
		if errors.Is(err, io.EOF) {
			return b, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

// remove removes secrets from what was kept, and as much at its end as one that is cut there may be.
func (b *body) remove(secrets [][]byte) {
	longest := 1 // in bytes
	for _, secret := range secrets {
		for _, written := range spellings(secret) {
			b.beginning = bytes.ReplaceAll(b.beginning, written, []byte(redact.Removed))
			longest = max(longest, len(written))
		}
	}
	if b.cut {
		most := (longest - 1) * len(redact.Removed) // in a part of one, each byte may have been a short one
		b.beginning = b.beginning[:max(0, len(b.beginning)-most)]
	}
}
