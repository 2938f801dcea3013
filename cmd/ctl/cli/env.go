package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/term"
)

// Env is the environment of a command. All fields are required; System sets them.
type Env struct {
	In       io.Reader
	Out, Err io.Writer
	Now      func() time.Time
	// Name is the program's name in hints: "scutectl" or "kubectl scute".
	Name    string
	Version string
	Getenv  func(string) string
	// Size returns the size of a stream's terminal; ok is false if the stream is not a terminal.
	Size func(stream any) (width, height int, ok bool)
	// Color is auto, always or never.
	Color string
}

// System returns the environment of this process.
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
	width, height, err := term.GetSize(int(f.Fd())) //nolint:gosec // file descriptors are small
	return width, height, err == nil && width > 0
}

// Values of --color.
const (
	ColorAuto   = "auto"
	ColorAlways = "always"
	ColorNever  = "never"
)

// CheckColor rejects an invalid --color.
func (e *Env) CheckColor() error {
	if e.Color != ColorAuto && e.Color != ColorAlways && e.Color != ColorNever {
		return Usagef("--color is %q: it must be auto, always or never", e.Color)
	}
	return nil
}

// Colored reports whether to color a stream. By default a terminal is colored, unless NO_COLOR or
// TERM=dumb is set; --color overrides this.
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

// CanRedraw reports whether a stream is a terminal on which lines can be redrawn in place.
func (e *Env) CanRedraw(stream any) bool {
	_, _, ok := e.Size(stream)
	return ok && e.Getenv("TERM") != "dumb"
}

// Hint returns a command of this program in backquotes, which can be pasted into a shell.
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

// Linef writes a line of data. It cleans all text, which may come from an API server or a backup.
func (e *Env) Linef(format string, args ...any) error {
	_, err := fmt.Fprintln(e.Out, Clean(fmt.Sprintf(format, args...)))
	return err
}

// Notef writes a message to Err, wrapped to the terminal. It cleans all text, as Linef does.
func (e *Env) Notef(format string, args ...any) {
	width, _, _ := e.Size(e.Err)
	for line := range strings.SplitSeq(fmt.Sprintf(format, args...), "\n") {
		for _, part := range Wrap(Clean(line), width) {
			fmt.Fprintln(e.Err, part)
		}
	}
}

// Progress is a line on Err that is redrawn in place. It writes nothing if Err is not a terminal.
type Progress struct {
	env   *Env
	last  time.Time
	shown bool
}

// Progress returns a new progress line.
func (e *Env) Progress() *Progress { return &Progress{env: e, last: e.Now()} }

const progressEvery = 200 * time.Millisecond

// Showf redraws the line, at most five times a second.
func (p *Progress) Showf(format string, args ...any) {
	now := p.env.Now()
	if _, _, terminal := p.env.Size(p.env.Err); !terminal || now.Sub(p.last) < progressEvery {
		return
	}
	p.last, p.shown = now, true
	fmt.Fprint(p.env.Err, "\r\x1b[2K"+Clean(fmt.Sprintf(format, args...)))
}

// Done clears the line.
func (p *Progress) Done() {
	if p.shown {
		fmt.Fprint(p.env.Err, "\r\x1b[2K")
	}
}
