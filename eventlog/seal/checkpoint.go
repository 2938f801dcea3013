package seal

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"golang.org/x/mod/sumdb/note"
	"golang.org/x/mod/sumdb/tlog"
)

// originPrefix is followed by the log's ID in the origin of a checkpoint, which is also the name of
// the key that signs the checkpoint.
const originPrefix = "scute.dev/log/"

// Checkpoint seals the contents of a log: the commits 1 to Size, and no others.
type Checkpoint struct {
	LogID string
	// Size is the number of commits, which equals the sequence of the last one.
	Size uint64
	Root tlog.Hash
}

// ErrSignature is returned if a checkpoint was altered, or is not signed by the expected key.
var ErrSignature = errors.New("the checkpoint is not signed by this key")

// body returns the text of the checkpoint that is signed (C2SP tlog-checkpoint).
func (c Checkpoint) body() string {
	return fmt.Sprintf("%s%s\n%d\n%s\n", originPrefix, c.LogID, c.Size, c.Root)
}

// Sign returns the checkpoint as a signed note.
func (c Checkpoint) Sign(k Key) ([]byte, error) {
	s, err := k.signer(c.LogID)
	if err != nil {
		return nil, fmt.Errorf("signing a checkpoint: %w", err)
	}
	signed, err := note.Sign(&note.Note{Text: c.body()}, s)
	if err != nil {
		return nil, fmt.Errorf("signing a checkpoint: %w", err)
	}
	return signed, nil
}

// OpenCheckpoint reads a signed note and checks that the key signed it. It accepts other
// signatures, for example of witnesses.
func OpenCheckpoint(signed []byte, key PublicKey) (Checkpoint, error) {
	verifier, err := key.verifier()
	if err != nil {
		return Checkpoint{}, err
	}
	n, err := note.Open(signed, note.VerifierList(verifier))
	if err != nil {
		var unverified *note.UnverifiedNoteError
		var wrong *note.InvalidSignatureError
		if errors.As(err, &unverified) || errors.As(err, &wrong) {
			return Checkpoint{}, fmt.Errorf("%w (%s): %w", ErrSignature, verifier.Name(), err)
		}
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: %w", err)
	}
	c, err := parseBody(n.Text)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("reading a checkpoint: %w", err)
	}
	if verifier.Name() != originPrefix+c.LogID {
		return Checkpoint{}, fmt.Errorf("%w: it is of log %s, the key is of %s", ErrSignature, c.LogID, verifier.Name())
	}
	return c, nil
}

func parseBody(text string) (Checkpoint, error) {
	lines := strings.Split(text, "\n")
	if len(lines) != 4 || lines[3] != "" {
		return Checkpoint{}, errors.New("it must have three lines: the origin, the size and the root")
	}
	id, ok := strings.CutPrefix(lines[0], originPrefix)
	if !ok || id == "" {
		return Checkpoint{}, fmt.Errorf("its origin is %q: it must be %s<log ID>", lines[0], originPrefix)
	}
	size, err := strconv.ParseUint(lines[1], 10, 62)
	if err != nil || strconv.FormatUint(size, 10) != lines[1] {
		return Checkpoint{}, fmt.Errorf("its size is %q: it must be a decimal number", lines[1])
	}
	root, err := tlog.ParseHash(lines[2])
	if err != nil {
		return Checkpoint{}, fmt.Errorf("its root is %q: it must be %d bytes in base64", lines[2], hashSize)
	}
	return Checkpoint{LogID: id, Size: size, Root: root}, nil
}

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
