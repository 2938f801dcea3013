package term

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// Style of a piece of text.
type Style string

// The styles: SGR parameters of ECMA-48, from the eight colors that every theme defines.
const (
	Plain  Style = ""
	Bold   Style = "1"
	Dim    Style = "2"
	Red    Style = "31"
	Green  Style = "32"
	Yellow Style = "33"
	Cyan   Style = "36"
)

// Paint colors text, or leaves it as it is. The zero value does.
type Paint struct{ On bool }

// Text is s in a style.
func (p Paint) Text(style Style, s string) string {
	if !p.On || style == Plain || s == "" {
		return s
	}
	return "\x1b[" + string(style) + "m" + s + "\x1b[0m"
}

// Width is the columns that a string takes on a terminal, colors left out. A rune counts as one.
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

// Fit cuts a string to a width, with an ellipsis where something was cut. Width 0 is no limit.
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

// escape is the length of the escape sequence that s begins with, 0 for none.
func escape(s string) int {
	if !strings.HasPrefix(s, "\x1b[") {
		return 0
	}
	return strings.IndexByte(s, 'm') + 1
}

// Clean makes text from elsewhere safe to print. Control characters, which a terminal would obey, become spaces; so do those that
// change the direction of writing or break a line, by which a text could look like another one.
func Clean(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || unicode.In(r, unicode.Bidi_Control, unicode.Zl, unicode.Zp) {
			return ' '
		}
		return r
	}, s)
}

// Safe is a line that was drawn, without what a terminal would obey but the colors of Paint: it may have text from elsewhere.
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

// painted is the length of the escape sequence of Paint that s begins with, 0 for none.
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
