package cli

import (
	"fmt"
	"io"
	"strings"
)

// Screen is a block of lines at the end of a terminal. It is redrawn in place.
type Screen struct {
	Out io.Writer
	// Size is Env.Size. It is called before each drawing, because the terminal may be resized.
	Size  func(stream any) (width, height int, ok bool)
	drawn int
}

// Draw replaces the block with lines. It truncates long lines, and omits the last lines if the
// terminal is too small.
func (s *Screen) Draw(lines []string) error {
	width, height, _ := s.Size(s.Out)
	if height > 2 && len(lines) > height-1 {
		cut := len(lines) - (height - 2)
		lines = append(lines[:height-2:height-2], fmt.Sprintf("… %d more lines", cut))
	}
	var b strings.Builder
	if s.drawn > 0 {
		fmt.Fprintf(&b, "\x1b[%dA", s.drawn) // up
	}
	b.WriteString("\r")
	for _, line := range lines {
		b.WriteString("\x1b[2K" + Fit(Safe(line), width) + "\n") // clear the line before writing it
	}
	b.WriteString("\x1b[J") // clear the rest of a longer block
	s.drawn = len(lines)
	_, err := io.WriteString(s.Out, b.String())
	return err
}
