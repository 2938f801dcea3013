package object

import (
	"strings"
	"unicode"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Text returns the string at a path of an object; "" if there is none.
func Text(u *unstructured.Unstructured, path ...string) string {
	text, _, _ := unstructured.NestedString(u.Object, path...)
	return text
}

// Printable returns a text of another program as one line that is safe in a terminal and a log:
// line breaks become spaces, and other invisible characters (escapes, changes of direction) are
// removed.
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

// Truncate returns the Printable beginning of a text, at most the given number of bytes, with three
// dots if it was cut.
func Truncate(text string, most int) string {
	const wide = 4 // up to this factor of the output may be white space; the rest is ignored
	if len(text) > wide*most {
		text = text[:wide*most]
	}
	if text = Printable(text); len(text) > most {
		return strings.ToValidUTF8(text[:most], "") + "..."
	}
	return text
}
