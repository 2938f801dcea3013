package main

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
)

// minute is how long before a violation its report begins.
const minute = time.Minute

// report prints events, one per line, and keeps the last minute of all events, printed or not.
type report struct {
	out io.Writer
	now func() time.Time

	mu      sync.Mutex
	started time.Time
	recent  []entry
	failed  []string
}

type entry struct {
	at   time.Time
	line string
}

func newReport(out io.Writer) *report { return &report{out: out, now: time.Now, started: time.Now()} }

// say prints an event.
func (r *report) say(what, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintln(r.out, r.add(r.now(), what, fmt.Sprintf(format, args...)))
}

// note keeps an event without printing it.
func (r *report) note(what, format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.add(r.now(), what, fmt.Sprintf(format, args...))
}

func (r *report) add(at time.Time, what, text string) string {
	since := at.Sub(r.started)
	line := fmt.Sprintf("%02d:%02d:%04.1f  %-9s %s", int(since.Hours()), int(since.Minutes())%60, since.Seconds()-60*float64(int(since.Minutes())), what, text)
	r.forget(at)
	r.recent = append(r.recent, entry{at, line})
	return line
}

// forget drops the events that are more than a minute old.
func (r *report) forget(now time.Time) {
	old := 0
	for old < len(r.recent) && now.Sub(r.recent[old].at) > minute {
		old++
	}
	r.recent = r.recent[old:]
}

// violated prints a violation, and the minute before it.
func (r *report) violated(err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.failed = append(r.failed, err.Error())
	r.forget(r.now())
	before := r.recent
	line := r.add(r.now(), "VIOLATION", err.Error())
	fmt.Fprintln(r.out, line)
	fmt.Fprintf(r.out, "--- the minute before it: faults, the logs' events, states of machines\n")
	for _, e := range before {
		fmt.Fprintln(r.out, "  "+e.line)
	}
	fmt.Fprintf(r.out, "--- end of the minute before: %s\n", strings.SplitN(err.Error(), ":", 2)[0])
}

// lines returns a writer for the output of others, such as the progress of the test bed's start.
func (r *report) lines() io.Writer { return lineWriter{r} }

type lineWriter struct{ report *report }

func (w lineWriter) Write(text []byte) (int, error) {
	for line := range strings.Lines(string(text)) {
		w.report.say("stack", "%s", strings.TrimSuffix(line, "\n"))
	}
	return len(text), nil
}

// violations returns the violations so far.
func (r *report) violations() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failed
}
