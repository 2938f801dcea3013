package cli

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style is a style of text.
type Style string

// Styles are SGR parameters (ECMA-48) of the eight colors that every theme defines.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint applies styles if On is set.
type Paint struct{ On bool }

// Text returns s in a style.
func (p Paint) Text(style Style, s string) string {
	if !p.On || style == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(style) + "m" + s + "\x1b[0m"
}

// Width returns the number of columns that a string occupies. Escape sequences occupy none, and
// each rune occupies one.
func Width(s string) int {
	width := 0
	for s != "" {
		if n := escape(s); n > 0 {
			s = s[n:]
			continue
		}
		_, n := utf8.DecodeRuneInString(s)
		s = s[n:]
		width++
	}
	return width
}

// Fit truncates a string to a width, with an ellipsis. Width 0 means no limit.
func Fit(s string, width int) string {
	if width <= 0 || Width(s) <= width {
		return s
	}
	var b strings.Builder
	colored := false
	for left := width - 1; s != ""; {
		n := escape(s)
		if n == 0 {
			if left == 0 {
				break
			}
			left--
			_, n = utf8.DecodeRuneInString(s)
		} else {
			colored = true
		}
		b.WriteString(s[:n])
		s = s[n:]
	}
	b.WriteString("…")
	if colored {
		b.WriteString("\x1b[0m")
	}
	return b.String()
}

// escape returns the length of the escape sequence at the beginning of s, or 0.
func escape(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	return strings.IndexByte(s, 'm') + 1
}

// Clean makes untrusted text safe to print. It replaces with spaces all control characters, and all
// characters that break a line or change the direction of text, because these can disguise the
// text.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, s)
}

// Safe cleans a line that is ready to print and may contain untrusted text. It keeps the colors
// that Paint has set.
func Safe(line string) string {
	var b strings.Builder
	for line != "" {
		n := painted(line)
		if n > 0 {
			b.WriteString(line[:n])
		} else {
			_, n = utf8.DecodeRuneInString(line)
			b.WriteString(Clean(line[:n]))
		}
		line = line[n:]
	}
	return b.String()
}

// painted returns the length of Paint's escape sequence at the beginning of s, or 0.
func painted(s string) int {
	n := escape(s)
	if n == 0 {
		return 0
	}
	switch Style(s[len("\x1b[") : n-1]) {
	case "0", Bold, Dim, Red, Green, Yellow, Cyan:
		return n
	default:
		return 0
	}
}

func pad(s string, width int) string {
	return s + strings.Repeat(" ", max(0, width-Width(s)))
}

// Bar returns a progress bar. It is empty if total is 0.
func Bar(p Paint, style Style, done, total, columns int) string {
	full := 0
	if total > 0 {
		full = columns * min(max(done, 0), total) / total
	}
	return p.Text(style, strings.Repeat("█", full)) + p.Text(Dim, strings.Repeat("░", columns-full))
}
