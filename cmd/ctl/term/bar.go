package term

import (
	"fmt"
	"strings"
)

// Bar returns a progress bar of a number of columns. It is empty if total is 0.
func Bar(p Paint, style Style, done, total, columns int) string {
	full := 0
	if total > 0 {
		full = columns * min(max(done, 0), total) / total
	}
	return p.Text(style, strings.Repeat("█", full)) + p.Text(Dim, strings.Repeat("░", columns-full))
}

// Ratio returns "done/total", padded so that its width is constant while done grows.
func Ratio(done, total int) string {
	width := len(fmt.Sprint(total))
	return fmt.Sprintf("%*d/%d", width, done, total)
}
