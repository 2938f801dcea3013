package exec

import (
	"fmt"
	"os"
	"sync"

	"scute.dev/internal/redact"
	"scute.dev/workflow/task"
)

const (
	// logLimit bounds the log of one attempt on disk.
	logLimit = 64 << 20
	// tailKept is what is remembered of the end of an output.
	tailKept = 16 << 10
)

// attemptLog takes what a command says: into a file of the run's folder if there is one, and its end for a message.
type attemptLog struct {
	mu      sync.Mutex
	file    *os.File
	written int
	tail    []byte
}

// openLog opens the log of an attempt. The folder is the operator's own: its content is not cleaned.
func openLog(c *task.Call) (*attemptLog, error) {
	if c.Dir == "" {
		return &attemptLog{}, nil
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the run's folder: %w", err)
	}
	file, err := os.OpenFile(c.LogPath(""), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the attempt's log: %w", err)
	}
	// A retry that recreates takes an attempt back under its number, and so may a rollback later.
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("opening the attempt's log: %w", err)
	}
	return &attemptLog{file: file, written: int(info.Size())}, nil
}

// Write never fails: a full disk must not end the command.
func (o *attemptLog) Write(p []byte) (int, error) {
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
func (o *attemptLog) Close() {
	if o.file != nil {
		o.file.Close()
	}
}

// Tail is the last lines, fit for the log.
func (o *attemptLog) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return redact.Tail(string(o.tail))
}
