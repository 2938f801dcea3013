package task

import (
	"fmt"
	"path/filepath"
	"strings"
)

// LogPath is the file of one attempt in the run's folder: TASK-ATTEMPT.log, TASK@HOOK-ATTEMPT.log for a hook, and
// ...-undoATTEMPT.log for what takes it back. No two of a run have the same one.
func (c *Call) LogPath(suffix string) string {
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
	return name[:longest] + "~" + Hash(name)
}
