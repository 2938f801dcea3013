// Command faultd is scuted with a fault point: it kills itself at the n-th write. The write is one
// of a move or a run to the event log or to an API server. It sends itself SIGKILL before the write
// is sent or after it was done. Everything else is the real daemon.
//
//	SCUTE_FAULT=after:3:move          kills itself right after the third write of a move
//	SCUTE_FAULT=before:7:run          kills itself before the seventh write of a workflow's run is sent
//	SCUTE_FAULT=after:2:remediation   kills itself right after the second write of a remediation
//	SCUTE_FAULT=before:1:bookkeeping  kills itself before the first claim, status or finalizer is written
//	SCUTE_FAULT_JOURNAL=file          records "reached", "done" and "counted", each with the class and the write
//
// Or it stops the moves of some namespaces, each at a write, and continues to run. After that,
// nothing of these moves is written.
//
//	SCUTE_FAULT_HOLD="fleet after 5 DELETE"   a move of namespace fleet stops after its fifth deletion; one line for each namespace
//
// The journal records "held", with the namespace and the write.
package main

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"scute.dev/aggregate"
	"scute.dev/cmd/daemon/app" //nolint:depguard // it is that command, with its connections wrapped
	"scute.dev/eventlog"
)

func main() { os.Exit(run()) }

func run() int {
	points, err := newPoints(os.Getenv("SCUTE_FAULT"), os.Getenv("SCUTE_FAULT_HOLD"), os.Getenv("SCUTE_FAULT_JOURNAL"))
	if err != nil {
		fmt.Fprintln(os.Stderr, "faultd:", err)
		return 2
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := app.New()
	options.WrapTransport = func(next http.RoundTripper) http.RoundTripper { return &transport{next, points} }
	options.WrapLog = func(next aggregate.Log) aggregate.Log { return &log{next, points} }
	cmd := &cobra.Command{
		Use: "faultd", SilenceUsage: true,
		RunE: func(*cobra.Command, []string) error { return app.Run(ctx, options) },
	}
	options.AddFlags(cmd.Flags())
	if cmd.ExecuteContext(ctx) != nil {
		return 1
	}
	return 0
}

// class is a class of writes. A daemon that is always killed at a claim makes no progress. One that is killed at writes
// of the move or the run does.
type class string

const (
	ofMove      class = "move"
	ofRun       class = "run"
	ofRemedy    class = "remediation"
	bookkeeping class = "bookkeeping"
)

// points counts the writes of one class and kills the process at the selected one.
type points struct {
	mu      sync.Mutex
	count   int
	at      int
	class   class
	before  bool
	journal *os.File
	holds   *holds

	// gate is read-locked by every write in progress, and locked by a kill before a write, so that earlier writes are
	// done by then, and nothing more is sent. Without it, every process could be killed during the same slow call.
	gate sync.RWMutex
}

func newPoints(fault, hold, journal string) (*points, error) {
	p := &points{holds: &holds{}}
	if fault != "" {
		parts := strings.Split(fault, ":")
		n := 0
		if len(parts) == 3 {
			n, _ = strconv.Atoi(parts[1])
		}
		if n < 1 || parts[0] != "before" && parts[0] != "after" || !slices.Contains([]class{ofMove, ofRun, ofRemedy, bookkeeping}, class(parts[2])) {
			return nil, fmt.Errorf("SCUTE_FAULT is %q: it must be before:N:CLASS or after:N:CLASS, CLASS move, run, remediation or bookkeeping", fault)
		}
		p.at, p.before, p.class = n, parts[0] == "before", class(parts[2])
	}
	if journal != "" {
		var err error
		if p.journal, err = os.OpenFile(journal, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644); err != nil {
			return nil, err
		}
	}
	if hold != "" {
		var err error
		if p.holds, err = newHolds(hold, p.journal); err != nil {
			return nil, err
		}
	}
	return p, nil
}

// enter records a write that is about to be sent. It returns a function that must be called after the write, with
// whether it was done. A refused write has no effect, so a kill after it is no separate fault point.
func (p *points) enter(of class, what string) (leave func(done bool)) {
	p.note("reached", of, what)
	if p.before && p.chosen(of, what) {
		p.gate.Lock()
		die()
	}
	p.gate.RLock()
	return func(done bool) {
		p.gate.RUnlock()
		if !done {
			return
		}
		p.note("done", of, what)
		if !p.before && p.chosen(of, what) {
			die()
		}
	}
}

// note writes one line with a single call, so that lines of several goroutines do not mix.
func (p *points) note(word string, of class, what string) {
	if p.journal != nil {
		fmt.Fprintln(p.journal, word, of, what)
	}
}

// chosen counts a write, and reports whether the process must be killed at it. Later writes are not counted.
func (p *points) chosen(of class, what string) bool {
	if of != p.class {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.count >= p.at {
		return false
	}
	p.count++
	p.note("counted", of, what)
	return p.count == p.at
}

func die() {
	_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
	select {}
}

type transport struct {
	next   http.RoundTripper
	points *points
}

// RoundTrip counts writes to objects. It ignores leases and events, which are not part of a move, and permission checks
// and dry runs, which change nothing.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	path := r.URL.Path
	if r.Method == http.MethodGet || strings.Contains(path, "/leases") || strings.Contains(path, "/events") ||
		strings.Contains(path, "selfsubject") || r.URL.Query().Has("dryRun") {
		return t.next.RoundTrip(r)
	}
	of := ofMove
	switch {
	case r.Header.Get("Impersonate-User") != "": // a task uses its ServiceAccount
		of = ofRun
	case r.UserAgent() == "scute/remediator" && (r.Method == http.MethodPost || r.Method == http.MethodDelete):
		of = ofRemedy // its requests belong to the remediation, although they are scute's own resources
	case strings.HasPrefix(path, "/apis/scute.dev/"):
		of = bookkeeping
	case r.UserAgent() == "scute/remediator":
		of = ofRemedy
	}
	what := r.Method + " " + r.URL.Host + path
	if of != ofMove {
		leave := t.points.enter(of, what)
		response, err := t.next.RoundTrip(r)
		leave(err == nil && response.StatusCode < http.StatusMultipleChoices)
		return response, err
	}
	return t.move(r, namespaceOf(path), what)
}

// move sends a write of a move, unless the move is held.
func (t *transport) move(r *http.Request, namespace, what string) (*http.Response, error) {
	if err := t.points.holds.before(r.Context(), namespace, what); err != nil {
		return nil, err
	}
	leave := t.points.enter(ofMove, what)
	response, err := t.next.RoundTrip(r)
	done := err == nil && response.StatusCode < http.StatusMultipleChoices
	leave(done)
	if !done {
		return response, err
	}
	if err := t.points.holds.after(r.Context(), namespace, what); err != nil {
		response.Body.Close()
		return nil, err
	}
	return response, nil
}

// namespaceOf returns the namespace in a path of an API server.
func namespaceOf(path string) string {
	_, rest, _ := strings.Cut(path, "/namespaces/")
	namespace, _, _ := strings.Cut(rest, "/")
	return namespace
}

type log struct {
	aggregate.Log
	points *points
}

func (l *log) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	of := ofMove
	switch kind := c.Events[0].Type; {
	case strings.Contains(kind, ".claimed."):
		of = bookkeeping
	case c.Aggregate.Kind == eventlog.KindRun:
		of = ofRun
	case c.Aggregate.Kind == eventlog.KindRemediation:
		of = ofRemedy
	}
	what := "APPEND"
	for _, e := range c.Events {
		what += " " + e.Type
	}
	held := &holds{} // without holds
	if of == ofMove && c.Aggregate.Kind == eventlog.KindMove {
		held = l.points.holds
	}
	namespace, _, _ := strings.Cut(c.Aggregate.ID, "/")
	if err := held.before(ctx, namespace, what); err != nil {
		return eventlog.Receipt{}, err
	}
	leave := l.points.enter(of, what)
	receipt, err := l.Log.Append(ctx, c)
	leave(err == nil)
	if err == nil {
		err = held.after(ctx, namespace, what)
	}
	return receipt, err
}
