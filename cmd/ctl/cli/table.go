package cli

import (
	"slices"
	"strings"
)

// Table renders rows in columns. If the table is too wide, its last columns wrap at spaces. If it
// is still too wide, they move below each row, with their names.
type Table struct {
	Header []string
	Rows   [][]string
	// Wrap is the number of columns, counted from the last one, that may wrap.
	Wrap   int
	Indent string
}

const (
	gap       = "  "
	narrowest = 16 // minimum width of a wrapped column
)

// Add appends a row.
func (t *Table) Add(cells ...string) { t.Rows = append(t.Rows, cells) }

// Lines returns the lines of the table. width limits their width; 0 means no limit.
func (t *Table) Lines(p Paint, width int) []string {
	widths := t.widths(width)
	var out []string
	header := make([]string, len(t.Header))
	for i, h := range t.Header {
		header[i] = p.Text(Bold, h)
	}
	if len(header) > 0 {
		out = append(out, t.line(header[:min(len(header), len(widths))], widths))
	}
	for _, row := range t.Rows {
		beside := min(len(row), len(widths))
		out = append(out, t.rowLines(row[:beside], widths)...)
		for i := beside; i < len(row); i++ {
			out = append(out, t.below(header[i], row[i], width)...)
		}
	}
	return out
}

// below returns the lines of a cell whose column was moved below the row.
func (t *Table) below(header, cell string, width int) (out []string) {
	if strings.TrimSpace(cell) == "" {
		return nil
	}
	first := t.Indent + strings.Repeat(gap, 2) + header + gap
	for i, part := range Wrap(strings.TrimSpace(cell), max(width-Width(first), narrowest)) {
		if i > 0 {
			first = strings.Repeat(" ", Width(first))
		}
		out = append(out, first+part)
	}
	return out
}

// widths returns the widths of the columns that fit beside each other within the limit. Columns
// that wrap have reduced widths.
func (t *Table) widths(limit int) []int {
	all := t.needed()
	fixed := len(all) - min(t.Wrap, len(all))
	for n := len(all); ; n-- {
		widths := slices.Clone(all[:n])
		left := limit - Width(t.Indent) - len(gap)*(n-1)
		for _, w := range widths[:min(fixed, n)] {
			left -= w
		}
		if limit > 0 && n > fixed {
			share(widths[fixed:], left)
			for _, w := range widths[fixed:] {
				left -= w
			}
		}
		if limit <= 0 || left >= 0 || n <= 1 || n > len(t.Header) {
			return widths
		}
	}
}

func (t *Table) needed() (widths []int) {
	for _, row := range slices.Concat([][]string{t.Header}, t.Rows) {
		for i, cell := range row {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], Width(cell))
		}
	}
	return widths
}

// share reduces the widths so that their sum fits into room. Columns narrower than an equal share
// keep their width, and the others share the rest equally.
func share(widths []int, room int) {
	columns := make([]int, len(widths))
	for i := range widths {
		columns[i] = i
	}
	slices.SortFunc(columns, func(a, b int) int { return widths[a] - widths[b] })
	for i, column := range columns {
		part := max(narrowest, room/(len(columns)-i))
		if widths[column] > part {
			for _, wide := range columns[i:] {
				widths[wide] = part
			}
			return
		}
		room -= widths[column]
	}
}

func (t *Table) rowLines(row []string, widths []int) []string {
	columns := make([][]string, len(row))
	height := 1
	for i, cell := range row {
		columns[i] = Wrap(cell, widths[i])
		height = max(height, len(columns[i]))
	}
	out := make([]string, height)
	for n := range out {
		cells := make([]string, len(row))
		for i, lines := range columns {
			if n < len(lines) {
				cells[i] = lines[n]
			}
		}
		out[n] = t.line(cells, widths)
	}
	return out
}

func (t *Table) line(cells []string, widths []int) string {
	padded := make([]string, len(cells))
	for i, cell := range cells {
		padded[i] = pad(cell, widths[i])
	}
	return strings.TrimRight(t.Indent+strings.Join(padded, gap), " ")
}

// Wrap breaks text into lines at spaces. It also breaks words that are longer than a line. Width 0
// means no limit.
func Wrap(s string, width int) []string {
	if width <= 0 || Width(s) <= width {
		return []string{s}
	}
	var lines []string
	line := ""
	for _, word := range strings.Fields(s) {
		switch {
		case line == "":
			line = word
		case Width(line)+1+Width(word) <= width:
			line += " " + word
		default:
			lines = append(lines, line)
			line = word
		}
		for Width(line) > width && escape(line) == 0 {
			runes := []rune(line)
			lines = append(lines, string(runes[:width]))
			line = string(runes[width:])
		}
	}
	if line != "" {
		lines = append(lines, line)
	}
	return lines
}
