package seal

import "bytes"

// signatureStart is the prefix of each signature of a signed note.
const signatureStart = "— "

// SplitNotes splits a file of consecutive signed notes.
func SplitNotes(text []byte) (notes [][]byte) {
	start, signed := 0, false
	for at := 0; at < len(text); {
		end := at + bytes.IndexByte(text[at:], '\n') + 1
		if end == at {
			end = len(text)
		}
		line := text[at:end]
		signature := bytes.HasPrefix(line, []byte(signatureStart))
		if signed && !signature {
			notes = append(notes, text[start:at])
			start, signed = at, false
		}
		switch {
		case signature:
			signed = true
		case start == at && len(bytes.TrimSpace(line)) == 0: // between two notes
			start = end
		}
		at = end
	}
	if start < len(text) {
		notes = append(notes, text[start:])
	}
	return notes
}
