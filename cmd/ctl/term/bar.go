package term

import (
	"fmt"
	"strings"
)

// Bar shows how much of a whole is done, in a number of columns. A whole of 0 is an empty bar.
func Bar(p Paint, style Style, done, total, columns int) string {
	full := 0
	if total > 0 {
		full = columns * min(max(done, 0), total) / total
	}
	return p.Text(style, strings.Repeat("█", full)) + p.Text(Dim, strings.Repeat("░", columns-full))
}

// Of is "done/total" with the total's width, so that it stays in place while it counts.
func Of(done, total int) string {
	width := len(fmt.Sprint(total))
	return fmt.Sprintf("%*d/%d", width, done, total)
}
