package logcmd

import (
	"bufio"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// eventSelector selects events by a filter. It needs all commits in their order.
type eventSelector struct {
	filter   *kit.Filter
	subjects *kit.Subjects
}

// each calls fn with the selected events of a commit and their index in it.
func (c eventSelector) each(r eventlog.Record, fn func(i int, e kit.Event, s kit.Subject) error) error {
	for i, e := range kit.Events(r) {
		about := c.subjects.Of(e)
		e = about.Name(e)
		if !c.filter.Match(e, about) {
			continue
		}
		if err := fn(i, e, about); err != nil {
			return fmt.Errorf("exporting commit %d: %w", r.Seq, err)
		}
	}
	return nil
}

// cloudEventWriter writes each event as a CloudEvent, one per line. It skips commits that scute did not write.
type cloudEventWriter struct {
	eventSelector
	out   *bufio.Writer
	logID string
}

func (w *cloudEventWriter) Write(r eventlog.Record) error {
	events, err := r.CloudEvents(w.logID)
	if err != nil {
		return nil //nolint:nilerr // this commit cannot be written as a CloudEvent; the lossless export contains it
	}
	encoder := json.NewEncoder(w.out)
	encoder.SetEscapeHTML(false)
	return w.each(r, func(i int, _ kit.Event, _ kit.Subject) error { return encoder.Encode(events[i]) })
}

func (w *cloudEventWriter) Close() error { return w.out.Flush() }

// csvHeader is the header of the CSV.
var csvHeader = []string{
	"sequence", "index", "time", "kind", "aggregate", "clusters", "machines", "type", "actor", "fact", "detail", "id", "causation",
}

type csvWriter struct {
	eventSelector
	out *csv.Writer
}

func (w *csvWriter) Write(r eventlog.Record) error {
	return w.each(r, func(i int, e kit.Event, s kit.Subject) error {
		row := []string{
			strconv.FormatUint(e.Seq, 10), strconv.Itoa(i), cli.Exact(e.Time), string(e.Aggregate.Kind), e.Aggregate.ID,
			strings.Join(s.Clusters, " "), strings.Join(s.Machines, " "), e.Type, kit.Actor(e.Actor), e.Line.Name, e.Text(), e.ID, e.Causation,
		}
		for j := range row {
			row[j] = cell(row[j])
		}
		return w.out.Write(row)
	})
}

func (w *csvWriter) Close() error {
	w.out.Flush()
	return w.out.Error()
}

// cell removes control characters from a user's text, and prevents a spreadsheet from evaluating it as a formula.
func cell(text string) string {
	text = cli.Clean(text)
	if begin := strings.TrimLeft(text, " "); begin != "" && strings.ContainsRune("=+-@", rune(begin[0])) {
		return "'" + text
	}
	return text
}
