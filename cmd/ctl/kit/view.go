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

// At formats a time relative to now and as an exact time: "3m12s ago (2026-07-30 12:00:05Z)".
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

// Field renders one line of a description, with a name and a value.
func (v View) Field(name, value string) string {
	if name != "" {
		name += ":"
	}
	return fmt.Sprintf("%-*s%s", label, name, value)
}

// Wrapped renders a field whose value may need several lines. Without a value it renders nothing.
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

// Times renders when something started and ended, and how long it took. span formats this duration.
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

// Untrusted renders why the daemon does not trust the event log. In that case the rest of the
// status is out of date.
func (v View) Untrusted(list []metav1.Condition) []string {
	if fault := trust.FaultIn(list); fault != nil {
		return v.Wrapped("Stalled", fault.Message, cli.Red)
	}
	return nil
}

// Outlook renders the message under the title Now or, if over is set, under the title Outcome. next
// is what a user can do. If unseen is set and there is no message, Outlook renders that no daemon
// has acted on the resource.
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

// Section renders a table below its title. Without rows it renders nothing.
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
	// Wrap is the number of columns, counted from the last one, that may wrap. With -o wide it is one
	// more. Only the header sets it.
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

// Tolerance returns the color for the number of etcd members that may still fail.
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

// Quorum renders etcd's quorum: how many voters respond, and how many more of them may fail.
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

// ToleranceText returns in words how many more members of etcd may fail.
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
