package kit

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/internal/trust"
)

// View renders text. Its zero value has no colors and no maximum width.
type View struct {
	Paint cli.Paint
	Width int // columns; 0 means no limit
	Now   time.Time
}

// At formats a time in words and exactly: "3m12s ago (2026-07-30 12:00:05Z)".
func (v View) At(t *metav1.Time) string {
	if t == nil {
		return "-"
	}
	return fmt.Sprintf("%s %s", cli.Ago(v.Now, t.Time), v.Paint.Text(cli.Dim, "("+cli.Second(t.Time)+")"))
}

// Age returns how long ago a time is, or "-".
func (v View) Age(t *metav1.Time) string {
	if t == nil || t.IsZero() {
		return "-"
	}
	return cli.Span(v.Now.Sub(t.Time))
}

const label = 14

// Field renders a line of a description.
func (v View) Field(name, value string) string {
	if name != "" {
		name += ":"
	}
	return fmt.Sprintf("%-*s%s", label, name, value)
}

// Wrapped renders a field that may need several lines, or nothing without a value.
func (v View) Wrapped(name, value string, as cli.Style) (out []string) {
	if value == "" {
		return nil
	}
	width := 0
	if v.Width > 0 {
		width = max(20, v.Width-label)
	}
	for i, line := range cli.Wrap(cli.Clean(value), width) {
		if i == 0 {
			out = append(out, v.Field(name, v.Paint.Text(as, line)))
		} else {
			out = append(out, strings.Repeat(" ", label)+v.Paint.Text(as, line))
		}
	}
	return out
}

// Times renders when something started and ended. span formats how long it took.
func (v View) Times(started, ended *metav1.Time, span func(time.Duration) string) (out []string) {
	if started != nil {
		out = append(out, v.Field("Started", v.At(started)))
	}
	if ended != nil {
		took := ""
		if started != nil {
			took = ", after " + span(ended.Sub(started.Time))
		}
		out = append(out, v.Field("Ended", v.At(ended)+took))
	}
	return out
}

// Untrusted renders why the event log may not be used. The other status is then out of date.
func (v View) Untrusted(list []metav1.Condition) []string {
	if fault := trust.FaultIn(list); fault != nil {
		return v.Wrapped("Stalled", fault.Message, cli.Red)
	}
	return nil
}

// Outlook renders what happens now, or the outcome if over is set, and what a user can do. Without
// a message, unseen means that no daemon has processed the resource.
func (v View) Outlook(over, unseen bool, message, next string) []string {
	name := "Now"
	if over {
		name = "Outcome"
	}
	if unseen && message == "" {
		name, message = "Now", "no daemon has acted on it yet"
	}
	return append(v.Wrapped(name, message, cli.Plain), v.Wrapped("Next", next, cli.Yellow)...)
}

// Section renders a table below its title, or nothing without rows.
func (v View) Section(title string, t *cli.Table) []string {
	if len(t.Rows) == 0 {
		return nil
	}
	t.Indent = "  "
	return append([]string{"", title + ":"}, t.Lines(v.Paint, v.Width)...)
}

// Head renders the first lines of a description: the resource, and its aggregate in the log.
func (v View) Head(kind, namespace, name, aggregate, id string) []string {
	out := []string{v.Field(kind, v.Paint.Text(cli.Bold, cli.Clean(namespace+"/"+name)))}
	if id != "" {
		out = append(out, v.Field("In the log", aggregate+"/"+cli.Clean(id)))
	}
	return out
}

// StatusLine renders a status in one line, for a pipe.
func StatusLine(phase, message, more, next string) string {
	if message != "" {
		phase += ": " + message
	}
	phase += more
	if next != "" {
		phase += "; next: " + next
	}
	return phase
}

const barColumns = 24

// Bar renders progress as a bar and as numbers of constant width.
func (v View) Bar(as cli.Style, done, total int) string {
	return fmt.Sprintf("%s %*d/%d", cli.Bar(v.Paint, as, done, total, barColumns), len(fmt.Sprint(total)), done, total)
}

// Row is a row of a table. Wide cells are shown only with -o wide.
type Row struct {
	Namespace   string
	Cells, Wide []string
	// Wrap is how many of the last columns may wrap; -o wide adds one. Only the header sets it.
	Wrap int
}

// Rows renders a table.
func (v View) Rows(header Row, rows []Row, namespaces, wide bool) []string {
	header.Namespace = "NAMESPACE"
	t := cli.Table{Header: header.cells(namespaces, wide), Wrap: header.Wrap}
	if wide {
		t.Wrap++
	}
	for _, r := range rows {
		t.Add(r.cells(namespaces, wide)...)
	}
	return t.Lines(v.Paint, v.Width)
}

func (r Row) cells(namespaces, wide bool) (out []string) {
	if namespaces {
		out = append(out, r.Namespace)
	}
	out = append(out, r.Cells...)
	if wide {
		out = append(out, r.Wide...)
	}
	return out
}

// Tries formats a number of attempts, "-" for 0.
func Tries(n int) string {
	if n == 0 {
		return "-"
	}
	return fmt.Sprint(n)
}

// Tolerance returns the color for the number of members that may still fail.
func Tolerance(tolerates int) cli.Style {
	switch {
	case tolerates < 0:
		return cli.Red
	case tolerates == 0:
		return cli.Yellow
	default:
		return cli.Green
	}
}

// Quorum renders etcd's quorum: how many voters respond, and how many of them may still fail.
func (v View) Quorum(q *v1alpha1.QuorumStatus) string {
	if q.External {
		return "external: its members are not part of the control plane and are not counted"
	}
	as := Tolerance(q.Tolerates)
	dots := v.Paint.Text(cli.Green, strings.Repeat("●", max(0, q.Responding))) + v.Paint.Text(cli.Red, strings.Repeat("○", max(0, q.Voters-q.Responding)))
	return fmt.Sprintf("%s %d of %d voters answer; %s", dots, q.Responding, q.Voters, v.EachWord(as, ToleranceText(q.Tolerates)))
}

// EachWord colors each word separately, so that a wrapped text has no color across lines.
func (v View) EachWord(as cli.Style, s string) string {
	words := strings.Fields(s)
	for i, w := range words {
		words[i] = v.Paint.Text(as, w)
	}
	return strings.Join(words, " ")
}

// ToleranceText returns in words how many members of etcd may still fail.
func ToleranceText(tolerates int) string {
	switch {
	case tolerates < 0:
		return "quorum is lost"
	case tolerates == 0:
		return "none of them may fail"
	default:
		return fmt.Sprintf("%d may still fail", tolerates)
	}
}
