package httprequest

import (
	"bytes"
	"errors"
	"io"

	"scute.dev/internal/redact"
)

// body is the part of a response that is kept. It is limited to the size of an output, because many
// tasks read untrusted responses at the same time.
type body struct {
	// beginning contains up to httpBodyOutput bytes. truncated means that the body has more.
	beginning []byte
	truncated bool
	// found means that the expected text is in the first httpBodyLimit bytes.
	found bool
}

// readBody reads up to httpBodyLimit bytes and searches them for the text. It reads them even if
// there is no text to find, because a server may not finish its work before its response is read.
func readBody(from io.Reader, text string) (*body, error) {
	const part = 4 << 10
	b := &body{found: text == ""}
	from = io.LimitReader(from, httpBodyLimit)
	wanted := []byte(text)
	window := make([]byte, 0, len(wanted)+part) // the last part, preceded by the end of the one before, where the text may begin
	for {
		n, err := from.Read(window[len(window):cap(window)])
		read := window[len(window) : len(window)+n]
		room := min(n, httpBodyOutput-len(b.beginning))
		b.beginning, b.truncated = append(b.beginning, read[:room]...), b.truncated || room < n
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

// removeSecrets removes secrets from the body. It also removes the end of a truncated body, which
// may contain a part of a secret.
func (b *body) removeSecrets(secrets [][]byte) {
	longest := 1 // in bytes
	for _, secret := range secrets {
		for _, written := range encodedForms(secret) {
			b.beginning = bytes.ReplaceAll(b.beginning, written, []byte(redact.Removed))
			longest = max(longest, len(written))
		}
	}
	if b.truncated {
		most := (longest - 1) * len(redact.Removed) // each byte of a cut secret may be a short secret that was replaced
		b.beginning = b.beginning[:max(0, len(b.beginning)-most)]
	}
}
