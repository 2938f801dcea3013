package exec

import (
	"fmt"
	"os"
	"sync"

	"scute.dev/internal/redact"
	"scute.dev/workflow/task"
)

const (
	logLimit  = 64 << 20
	tailBytes = 16 << 10
)

// attemptLog writes a command's output to the run's directory, if any, and keeps the end for a message.
type attemptLog struct {
	mu      sync.Mutex
	file    *os.File
	written int
	tail    []byte
}

// openLog opens the file for the output of an attempt. The output is not redacted, because the
// directory belongs to the operator.
func openLog(c *task.Call) (*attemptLog, error) {
	if c.Dir == "" {
		return &attemptLog{}, nil
	}
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("creating the run's folder: %w", err)
	}
	file, err := os.OpenFile(c.LogPath(""), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, fmt.Errorf("opening the attempt's log: %w", err)
	}
	// The file may already exist: an undo for a retry with recreate and the undo of a later rollback
	// can have the same number.
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, fmt.Errorf("opening the attempt's log: %w", err)
	}
	return &attemptLog{file: file, written: int(info.Size())}, nil
}

// Write adds output to the file and to the tail. It never returns an error, because a full disk
// must not end the command.
func (o *attemptLog) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if room := logLimit - o.written; o.file != nil && room > 0 {
		n, err := o.file.Write(p[:min(len(p), room)])
		if o.written += n; err != nil {
			o.written = logLimit
		} else if o.written >= logLimit {
			fmt.Fprintln(o.file, "\n(the log of this attempt is full: the rest is omitted)")
		}
	}
	o.tail = append(o.tail, p...)
	if over := len(o.tail) - tailBytes; over > 0 {
		o.tail = append(o.tail[:0], o.tail[over:]...)
	}
	return len(p), nil
}

func (o *attemptLog) Close() {
	if o.file != nil {
		o.file.Close()
	}
}

// Tail returns the last lines, redacted for the event log.
func (o *attemptLog) Tail() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return redact.Tail(string(o.tail))
}
