package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"

	text "scute.dev/cmd/ctl/term"
)

// Env is the world around a command. The zero value of a field is not usable unless said; System fills all of them.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Now      func() time.Time
	// Name is how the program was called, for hints: "scutectl" or "kubectl scute".
	Name string
	// Version of the program.
	Version string
	// Getenv reads an environment variable.
	Getenv func(string) string
	// Size is the width and height of the terminal that a stream is; ok is false when it is none.
	Size func(stream any) (width, height int, ok bool)
	// Color is auto, always or never.
	Color string
}

// System is the world of this process.
func System(name, version string) *Env {
	return &Env{
		In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Now: time.Now,
		Name: name, Version: version, Getenv: os.Getenv, Size: size, Color: ColorAuto,
	}
}

func size(stream any) (width, height int, ok bool) {
	f, isFile := stream.(*os.File)
	if !isFile {
		return 0, 0, false
	}
	width, height, err := term.GetSize(int(f.Fd())) //nolint:gosec // a descriptor is small
	return width, height, err == nil && width > 0
}

// The values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// CheckColor says whether --color has a value that it may have.
func (e *Env) CheckColor() error {
	switch e.Color {
	case ColorAuto, ColorAlways, ColorNever:
		return nil
	default:
		return Usagef("--color is %q: it must be auto, always or never", e.Color)
	}
}

// Colored says whether what is written to a stream may bear colors: on a terminal, unless NO_COLOR or TERM=dumb asks
// for none, or as --color says.
func (e *Env) Colored(stream any) bool {
	switch e.Color {
	case ColorAlways:
		return true
	case ColorNever:
		return false
	}
	_, _, terminal := e.Size(stream)
	return terminal && e.Getenv("NO_COLOR") == "" && e.Getenv("TERM") != "dumb"
}

// Redrawn says whether a stream is a terminal on which a display can be redrawn.
func (e *Env) Redrawn(stream any) bool {
	_, _, ok := e.Size(stream)
	return ok && e.Getenv("TERM") != "dumb"
}

// Hint is a command of this program that can be pasted into a shell, in backquotes.
func (e *Env) Hint(words ...string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = quote(w)
	}
	return "`" + e.Name + " " + strings.Join(quoted, " ") + "`"
}

func quote(word string) string {
	if word != "" && !strings.ContainsAny(word, " '\"$&|;<>()[]{}*?!#~`\\\t\n") {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// Width of Out in columns; 0, no limit, when it is not a terminal.
func (e *Env) Width() int {
	width, _, ok := e.Size(e.Out)
	if !ok {
		return 0
	}
	return width
}

// Linef writes a line of what a command was asked for. What it says may be from elsewhere: an API server, a status or a backup.
func (e *Env) Linef(format string, args ...any) error {
	_, err := fmt.Fprintln(e.Out, text.Clean(fmt.Sprintf(format, args...)))
	return err
}

// Notef tells a human something that is not the data. On a terminal it is broken at spaces. What is told may be from elsewhere: an
// API server, a status or a backup.
func (e *Env) Notef(format string, args ...any) {
	width, _, _ := e.Size(e.Err)
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		for _, part := range text.Wrap(text.Clean(line), width) {
			fmt.Fprintln(e.Err, part)
		}
	}
}
