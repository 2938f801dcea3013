package redact

import (
	"regexp"
	"strings"
)

// maxTail is the maximum length of Tail's result.
const maxTail = 900

// Tail returns the last lines of a text, shortened and without keys and tokens, for the log.
func Tail(text string) string {
	// This precedes the cut, because a part of a key does not have the form of a key.
	text = redactKeys(text)
	if i := strings.LastIndex(text, "-----END "); i >= 0 { // its beginning is missing
		text = Removed + strings.TrimLeft(text[i+len("-----END "):], "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 -")
	}
	text = regexp.MustCompile(`[A-Za-z0-9+/=_.-]{80,}`).ReplaceAllString(text, Removed)
	text = Text(text)
	text = strings.TrimSpace(strings.ToValidUTF8(text, ""))
	if over := len(text) - maxTail; over > 0 {
		text = text[over:]
		if _, rest, found := strings.Cut(text, "\n"); found {
			text = rest
		}
		text = strings.ToValidUTF8(text, "")
	}
	return Message(text)
}
