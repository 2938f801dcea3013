package object

import (
	"strings"
	"unicode"
)

// Printable is a text of somebody else's as one line that is safe to show on a terminal and in a log: spaces for what
// breaks lines, and nothing for the other characters that have no form of their own (escapes, changes of direction).
func Printable(text string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case unicode.IsPrint(r) && r != unicode.ReplacementChar:
			return r
		default:
			return -1
		}
	}, text)
	return strings.Join(strings.Fields(clean), " ")
}

// Brief is the beginning of a text, Printable, with so many bytes at most and three dots where it goes on.
func Brief(text string, most int) string {
	const wide = 4 // times what is shown may be white space; the rest is not looked at
	if len(text) > wide*most {
		text = text[:wide*most]
	}
	if text = Printable(text); len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
