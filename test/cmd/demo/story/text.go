package story

import (
	"bytes"
	"io"
	"strings"
)

// clean replaces control characters of foreign text with spaces, so that it is safe to print on a line.
func clean(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// wrap breaks text at spaces into lines of a width in runes. A longer word is not broken. 0 means no limit.
func wrap(s string, width int) []string {
	if width <= 0 || len([]rune(s)) <= width {
		return []string{s}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case len([]rune(line))+1+len([]rune(word)) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
	}
	return append(lines, line)
}

// fit truncates text to a width.
func fit(s string, width int) string {
	runes := []rune(s)
	if width < 1 || len(runes) <= width {
		return s
	}
	return string(runes[:width-1]) + "…"
}

// Lines returns a writer that prints every complete line as a fact.
func (s *Story) Lines() io.Writer { return &lines{story: s} }

type lines struct {
	story *Story
	rest  []byte
}

func (l *lines) Write(p []byte) (int, error) {
	l.rest = append(l.rest, p...)
	for {
		line, rest, found := bytes.Cut(l.rest, []byte("\n"))
		if !found {
			return len(p), nil
		}
		l.rest = rest
		if text := strings.TrimSpace(string(line)); text != "" {
			l.story.Say("%s", text)
		}
	}
}
