package redact

import (
	"regexp"
	"strings"
)

// tail bounds what Tail repeats.
const tail = 900

// Tail are the last lines of a text, fit for the log: short, and without what looks like a key or a token.
func Tail(text string) string {
	// Before it is cut: half a key does not look like one any more.
	text = keys(text)
	if i := strings.LastIndex(text, "-----END "); i >= 0 { // its beginning is out of sight
		text = Removed + strings.TrimLeft(text[i+len("-----END "):], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -")
	}
	text = regexp.MustCompile(`[A-Za-z0-9+/=_.-]{80,}`).ReplaceAllString(text, Removed)
	text = Text(text)
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if over := len(text) - tail; over > 0 {
		text = text[over:]
		if _, rest, found := strings.Cut(text, "\n"); found {
			text = rest
		}
		text = strings.ToValidUTF8(text, "")
	}
	return Message(text)
}
