package task

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"

	"scute.dev/internal/redact"
)

const (
	// logLimit bounds the log of one attempt on disk.
	logLimit = 64 << 20
	// tailKept is what is remembered of the end of an output, tailSaid what a message repeats of it.
	tailKept = 16 << 10
	tailSaid = 900
)

// commandOutput takes what a command says: into a file of the run's folder if there is one, and its end for a message.
type commandOutput struct {
	mu      sync.Mutex
	file    *os.File
	written int
	tail    []byte
}

// openOutput opens the log of an attempt. The folder is the operator's own: its content is not cleaned.
func openOutput(c *Call) (*commandOutput, error) {
	if c.Dir == "" {
		return &commandOutput{}, nil
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the run's folder: %w", err)
	}
	file, err := os.OpenFile(logPath(c, ""), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the attempt's log: %w", err)
	}
	// A retry that recreates takes an attempt back under its number, and so may a rollback later.
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("opening the attempt's log: %w", err)
	}
	return &commandOutput{file: file, written: int(info.Size())}, nil
}

// logPath is the file of one attempt in the run's folder: TASK-ATTEMPT.log, TASK@HOOK-ATTEMPT.log for a hook, and
// ...-undoATTEMPT.log for what takes it back. No two of a run have the same one.
func logPath(c *Call, suffix string) string {
	name, undo := fileName(c.Task), ""
	if c.Step != "" {
		name += "@" + fileName(c.Step)
	}
	if c.Undoing {
		undo = "undo"
	}
	return filepath.Join(c.Dir, fmt.Sprintf("%s-%s%d%s.log", shortened(name), undo, c.Attempt, suffix))
}

// fileName makes a part of a file's name of a name, and another one of every other name.
func fileName(name string) string {
	var b strings.Builder
	for i := range len(name) {
		switch c := name[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_', c == '.' && i > 0:
			b.WriteByte(c)
		case c == '/':
			b.WriteByte('+')
		default:
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// shortened is a name that every file system takes. What is left out is told by a hash.
func shortened(name string) string {
	const longest = 150
	if len(name) <= longest {
		return name
	}
	return name[:longest] + "~" + hashOf(name)
}

// Write never fails: a full disk must not end the command.
func (o *commandOutput) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := logLimit - o.written; o.file != nil && room > 0 {
		n, err := o.file.Write(p[:min(len(p), room)])
		if o.written += n; err != nil {
			o.written = logLimit
		} else if o.written >= logLimit {
			fmt.Fprintln(o.file, "\n(the log of this attempt is full: the rest is left out)")
		}
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - tailKept; over > 0 {
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	return len(p), nil
}

// Close closes the file.
func (o *commandOutput) Close() {
	if o.file != nil {
		o.file.Close()
	}
}

// Tail is the last lines, fit for the log.
func (o *commandOutput) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return lastLines(string(o.tail))
}

// lastLines are the last lines of a text, fit for the log: short, and without what looks like a key or a token.
func lastLines(text string) string {
	// Before it is cut: half a key does not look like one any more.
	text = redact.Keys(text)
	if i := strings.LastIndex(text, "-----END "); i >= 0 { // its beginning is out of sight
		text = redact.Removed + strings.TrimLeft(text[i+len("-----END "):], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -")
	}
	text = regexp.MustCompile(`[A-Za-z0-9+/=_.-]{80,}`).ReplaceAllString(text, redact.Removed)
	text = redact.Text(text)
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if over := len(text) - tailSaid; over > 0 {
		text = text[over:]
		if _, rest, found := strings.Cut(text, "\n"); found {
			text = rest
		}
		text = strings.ToValidUTF8(text, "")
	}
	return redact.Message(text)
}
