package story

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"golang.org/x/term"
)

// Story prints to one stream. It is safe for concurrent use. Use New, or set the fields before use.
type Story struct {
	Out io.Writer
	// Terminal allows redrawing lines in place, Color allows colors.
	Terminal, Color bool
	// Width returns the number of columns. It is called for each line; nil or 0 means no limit.
	Width func() int

	mu      sync.Mutex
	started time.Time
	step    int
	live    *Live
	drawn   bool // the live line is on the screen
}

// New returns a Story for a file. It uses colors on a terminal, unless NO_COLOR is set.
func New(out *os.File, getenv func(string) string) *Story {
	s := &Story{Out: out}
	fd := int(out.Fd()) //nolint:gosec // a descriptor is small
	if s.Terminal = term.IsTerminal(fd) && getenv("TERM") != "dumb"; s.Terminal {
		s.Color = getenv("NO_COLOR") == ""
		s.Width = func() int {
			width, _, _ := term.GetSize(fd)
			return width
		}
	}
	return s
}

// style is the parameter of an ECMA-48 escape sequence, one of the eight colors that every theme defines.
type style string

const (
	plain  style = ""
	bold   style = "1"
	dim    style = "2"
	red    style = "31"
	green  style = "32"
	yellow style = "33"
)

func (s *Story) paint(as style, text string) string {
	if !s.Color || as == plain || text == "" {
		return text
	}
	return "\x1b[" + string(as) + "m" + text + "\x1b[0m"
}

// Title prints the title.
func (s *Story) Title(text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(s.paint(bold, text))
}

// Step begins the next step.
func (s *Story) Step(title string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.step++
	s.print("", s.paint(bold, fmt.Sprintf("%d  %s", s.step, title)))
}

// Say prints a fact.
func (s *Story) Say(format string, args ...any) { s.tell(plain, "", fmt.Sprintf(format, args...)) }

// Hit prints that something destructive was done intentionally.
func (s *Story) Hit(format string, args ...any) { s.tell(yellow, "! ", fmt.Sprintf(format, args...)) }

// Good prints an expected result.
func (s *Story) Good(format string, args ...any) { s.tell(green, "✓ ", fmt.Sprintf(format, args...)) }

// Bad prints an unexpected result.
func (s *Story) Bad(format string, args ...any) { s.tell(red, "✗ ", fmt.Sprintf(format, args...)) }

// Command prints a command as a user would type it. Its output follows on Out.
func (s *Story) Command(line string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.print(s.paint(bold, "$ "+line))
}

// Elapsed returns the time since the first output.
func (s *Story) Elapsed() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.elapsed()
}

func (s *Story) elapsed() time.Duration {
	if s.started.IsZero() {
		s.started = time.Now()
	}
	return time.Since(s.started)
}

const (
	indent    = 8 // the column of the clock and the gaps next to it
	narrowest = 40
)

// tell prints the clock, a mark and the text. A long text is wrapped with an indent.
func (s *Story) tell(as style, mark, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	width := 0
	if s.Width != nil {
		width = s.Width()
	}
	lines := wrap(clean(text), room(width))
	for i, line := range lines {
		lead := s.paint(dim, fmt.Sprintf("%6s  ", clock(s.elapsed()))) + s.paint(as, mark)
		if i > 0 {
			lead = strings.Repeat(" ", indent+len([]rune(mark)))
		}
		s.print(lead + line)
	}
}

// room returns the maximum width of a fact; 0 means no limit.
func room(width int) int {
	if width <= 0 {
		return 0
	}
	return max(narrowest, width-indent-2)
}

func clock(d time.Duration) string {
	seconds := int(d / time.Second)
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// print prints lines above the live line. The caller holds mu.
func (s *Story) print(lines ...string) {
	s.elapsed() // starts the clock
	s.erase()
	for _, line := range lines {
		fmt.Fprintln(s.Out, line)
	}
}
