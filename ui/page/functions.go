package page

import (
	"html/template"
	"strings"
	"time"

	"scute.dev/cmd/ctl/cli"
	words "scute.dev/view"
)

// briefLength limits a text in a list, in characters. The page about the subject of the text shows
// the whole text.
const briefLength = 2000

func functions() template.FuncMap {
	return template.FuncMap{
		"clean":   cli.Clean,
		"second":  func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05") },
		"machine": func(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) },
		"clock":   func(t time.Time) string { return t.UTC().Format("15:04:05.000") },
		"span":    span,
		"told":    splitCommands,
		"plural":  words.Count[int],
		"add":     func(a, b int) int { return a + b },
		"half":    func(a int) int { return a / 2 },
		"fit":     fit,
		"brief":   func(s string) string { return fit(briefLength, s) },
	}
}

// span formats a duration. A short duration is shown with milliseconds.
func span(d time.Duration) string {
	if d < 10*time.Second {
		return d.Round(time.Millisecond).String()
	}
	return cli.Span(d)
}

func fit(letters int, s string) string { return cli.Fit(cli.Clean(s), letters) }

type sentencePart struct {
	Text    string
	Command bool
}

// splitCommands splits a sentence into commands, which are in backquotes, and the text between
// them.
func splitCommands(sentence string) (parts []sentencePart) {
	for i, text := range strings.Split(cli.Clean(sentence), "`") {
		if text != "" {
			parts = append(parts, sentencePart{Text: text, Command: i%2 == 1})
		}
	}
	return parts
}
