package task

import (
	"fmt"
	"path/filepath"
	"strings"
)

// LogPath returns the path of an attempt's log in the run's directory: TASK-ATTEMPT.log,
// TASK@HOOK-ATTEMPT.log for a hook, and ...-undoATTEMPT.log for an undo. It is unique in the run.
func (c *Call) LogPath(suffix string) string {
	name, undo := fileName(c.Task), ""
	if c.Step != "" {
		name += "@" + fileName(c.Step)
	}
	if c.Undoing {
		undo = "undo"
	}
	return filepath.Join(c.Dir, fmt.Sprintf("%s-%s%d%s.log", shorten(name), undo, c.Attempt, suffix))
}

// fileName escapes a name for use in a file name. Different names give different results.
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

func shorten(name string) string {
	const longest = 150
	if len(name) <= longest {
		return name
	}
	return name[:longest] + "~" + Hash(name)
}
