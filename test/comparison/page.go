package comparison

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// table returns a table with one line for each case: first those with a row of the findings, in their order, then the
// others by name.
func table(version string, cases []Case) string {
	cases = slices.Clone(cases)
	slices.SortFunc(cases, func(a, b Case) int {
		if (a.Row == "") != (b.Row == "") {
			return len(b.Row) - len(a.Row)
		}
		return cmp.Or(len(a.Row)-len(b.Row), strings.Compare(a.Row, b.Row), strings.Compare(a.Name, b.Name))
	})
	var b strings.Builder
	fmt.Fprintf(&b, "### Cluster API %s\n\n", version)
	b.WriteString("| fault | plain: ends | after | members | scute: ends | after | members |\n|---|---|---|---|---|---|---|\n")
	for i := range cases {
		c := &cases[i]
		fmt.Fprintf(&b, "| %s | %s |\n", c.title(), c.cells())
	}
	return b.String()
}

func (c *Case) title() string {
	if c.Row != "" {
		return c.Name + " (" + c.Row + ")"
	}
	return c.Name
}

// cells returns the cells of a line. For a case that has not run they are those of the page.
func (c *Case) cells() string {
	if c.Kept != "" {
		return c.Kept
	}
	return c.Plain.cells() + " | " + c.Scute.cells()
}

// keep adds the cases of a page that have not run to those that have.
func keep(page string, cases []Case) []Case {
	for line := range strings.Lines(page) {
		title, cells, row := strings.Cut(strings.TrimSuffix(strings.TrimPrefix(line, "| "), " |\n"), " | ")
		if !row || title == "fault" || strings.HasPrefix(title, "|") || slices.ContainsFunc(cases, func(c Case) bool { return c.title() == title }) {
			continue
		}
		c := Case{Name: title, Kept: cells}
		if name, number, numbered := strings.Cut(strings.TrimSuffix(title, ")"), " ("); numbered {
			c.Name, c.Row = name, number
		}
		cases = append(cases, c)
	}
	return cases
}

func (o *Outcome) cells() string {
	end, after, members := o.End, fmt.Sprintf("%.0f s", o.After.Round(time.Second).Seconds()), fmt.Sprint(o.Members)
	if end == "" {
		end, after = "**not repaired**", "not within "+after
	}
	if o.Touched {
		end += ", **and machines deleted meanwhile**"
	}
	if o.Lost > 0 {
		end += fmt.Sprintf(", **%d healthy machines lost**", o.Lost)
	}
	if o.Members == None {
		members = "-"
	}
	if o.Unserved {
		members += ", API server unavailable"
	}
	return strings.Join([]string{end, after, members}, " | ")
}

// marks returns the lines around the part of a page that a make target writes. A page may have one part for each
// version.
func marks(target, version string) (begin, end string) {
	return "<!-- make " + target + " writes this: Cluster API " + version + " -->\n", "<!-- end of Cluster API " + version + " -->\n"
}

// Write returns the page with the table of these cases. It replaces the table of the same version, or is appended. The
// rows of other cases stay.
func Write(page, version string, cases []Case) (string, error) {
	begin, end := marks("comparison", version)
	_, now, _ := strings.Cut(page, begin)
	now, _, _ = strings.Cut(now, end)
	return place(page, "comparison", version, table(version, keep(now, cases)))
}

// WriteCrashes writes a table of crashes, like Write.
func WriteCrashes(page, version string, crashes []Crash) (string, error) {
	return place(page, "comparison-move", version, crashTable(version, crashes))
}

// place writes a table between the marks of a page.
func place(page, target, version, table string) (string, error) {
	begin, end := marks(target, version)
	block := begin + "\n" + table + "\n" + end
	before, rest, found := strings.Cut(page, begin)
	if !found {
		return strings.TrimRight(page, "\n") + "\n\n" + block, nil
	}
	_, after, found := strings.Cut(rest, end)
	if !found {
		return "", fmt.Errorf("the page has %q and not %q", strings.TrimSpace(begin), strings.TrimSpace(end))
	}
	return before + block + after, nil
}
