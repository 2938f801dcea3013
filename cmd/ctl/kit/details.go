package kit

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/cmd/ctl/cli"
)

// Details are the parts of an object that its description in a terminal and its web page share.
type Details struct {
	Fields []Field
	Stages []Stage
	Counts []Count
	Tables []Table
}

// Field is a named property.
type Field struct{ Name, Value string }

// Stage is a phase in the sequence of an object's phases.
type Stage struct {
	Name string
	// Sign is ✓ for past, ▶ for the current, ✗ for failed, ‖ for waiting, and · for future stages.
	Sign  string
	Style cli.Style
	// Return is true for the last stage before the point of no return.
	Return bool
}

// Stages converts the phases in path to stages, of which the first n are reached. The last reached
// stage gets the sign current and the style as.
func Stages[P ~string](path []P, n int, current string, as cli.Style) (out []Stage) {
	for i, phase := range path {
		s := Stage{Name: string(phase), Sign: "✓", Style: cli.Green}
		switch {
		case i == n-1:
			s.Sign, s.Style = current, as
		case i >= n:
			s.Sign, s.Style = "·", cli.Dim
		}
		out = append(out, s)
	}
	return out
}

// Count is progress: Done of Of objects.
type Count struct {
	Name     string
	Done, Of int
}

// Table is a list with a title. A page shows a part of a long list.
type Table struct {
	Title  string
	Header []string
	Rows   [][]string
	// Wrap is the number of columns, counted from the last one, that a terminal may wrap.
	Wrap int
	// Cluster is the index of the column with the name of the cluster, by which a page filters rows. 0
	// means that there is no such column.
	Cluster int
	Note    string
}

// Status contains what a description shows of a resource, in addition to its name.
type Status struct {
	Phase                    string // "" until a daemon has acted on the resource
	ID                       string // in the log
	Since, Started, Finished *metav1.Time
	Message, Next            string
	Conditions               []metav1.Condition
	Details
}

// Status renders those parts of a description that change over time.
func (v View) Status(s Status) []string {
	phase := v.Word(cmp.Or(s.Phase, "Pending"))
	if s.Since != nil && s.Finished == nil {
		phase += " for " + v.Age(s.Since) + v.Paint.Text(cli.Dim, " (since "+cli.Second(s.Since.Time)+")")
	}
	out := []string{v.Field("Phase", phase)}
	if len(s.Stages) > 0 {
		out = append(out, v.Field("", v.Path(s.Stages)))
	}
	out = append(out, v.Times(s.Started, s.Finished, cli.Span)...)
	for _, c := range s.Counts {
		as := cli.Cyan
		if c.Done >= c.Of {
			as = cli.Green
		}
		out = append(out, v.Field(c.Name, v.Bar(as, c.Done, c.Of)))
	}
	out = append(out, v.Untrusted(s.Conditions)...)
	out = append(out, v.Outlook(s.Finished != nil, s.Phase == "", s.Message, s.Next)...)
	return append(out, v.Tables(s.Tables)...)
}

// Describe renders the description of a resource without its timeline.
func (v View) Describe(kind string, o client.Object, s Status) []string {
	out := v.Head(kind, o.GetNamespace(), o.GetName(), strings.ToLower(kind), s.ID)
	for _, f := range s.Fields {
		out = append(out, v.Field(f.Name, cli.Clean(f.Value)))
	}
	return slices.Concat(out, []string{""}, v.Status(s))
}

// Tables renders tables below their titles. It omits tables without rows.
func (v View) Tables(list []Table) (out []string) {
	for _, t := range list {
		table := &cli.Table{Wrap: t.Wrap}
		for _, h := range t.Header {
			table.Header = append(table.Header, strings.ToUpper(h))
		}
		for _, row := range t.Rows {
			cells := make([]string, len(row))
			for i, cell := range row {
				cells[i] = cli.Clean(cell)
			}
			table.Add(cells...)
		}
		out = append(out, v.Section(t.Title, table)...)
	}
	return out
}

// Path renders stages in one line. If this line is too long, it renders only the signs and the
// number of reached stages.
func (v View) Path(stages []Stage) string {
	var signs, words []string
	reached := 0
	for _, s := range stages {
		signs, words = append(signs, v.Paint.Text(s.Style, s.Sign)), append(words, v.Paint.Text(s.Style, s.Sign+" "+s.Name))
		if s.Sign != "·" {
			reached++
		}
	}
	long := strings.Join(words, " ")
	if v.Width > 0 && cli.Width(long) > v.Width-label {
		return fmt.Sprintf("%s %d of %d", strings.Join(signs, ""), reached, len(stages))
	}
	return long
}
