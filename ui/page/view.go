package page

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
)

// view is the state of one request: the moment and the parameters of the page.
type view struct {
	site     *Site
	snapshot *feed.Snapshot
	path     string
	query    url.Values
	past     bool
	head     uint64
	now      time.Time
}

// frame is the common frame of all pages, with the content.
type frame struct {
	*view
	Title   string
	Content any
	Part    bool // only the part that changes
}

// titled is content with a title.
type titled interface{ title() string }

func (v *view) write(out io.Writer, part bool) error {
	p := v.site.pages[v.path]
	content, err := p.build(v)
	if err != nil {
		return err
	}
	f := frame{view: v, Content: content, Title: "scute", Part: part}
	if t, ok := content.(titled); ok {
		f.Title = t.title()
	}
	name := "frame.html"
	if part {
		name = "live"
	}
	return p.template.ExecuteTemplate(out, name, f)
}

// Where returns the location of the log.
func (v *view) Where() string { return v.site.where }

// Past reports whether the page shows a chosen moment, and thus does not change.
func (v *view) Past() bool { return v.past }

// Seq returns the last commit that the page includes.
func (v *view) Seq() uint64 { return v.snapshot.Seq }

// Head returns the last commit of the log.
func (v *view) Head() uint64 { return v.head }

// Moment returns the page's time, the end of unfinished durations.
func (v *view) Moment() time.Time { return v.now }

// Stored returns when the commit was stored.
func (v *view) Stored() time.Time { return v.snapshot.Stored }

// Here reports whether a path is the page's path.
func (v *view) Here(path string) bool { return v.path == path }

// Live returns the address of the page's updates.
func (v *view) Live() string {
	q := v.copyQuery()
	q.Set("after", strconv.FormatUint(v.snapshot.Seq, 10))
	return "/live" + v.path + "?" + q.Encode()
}

func (v *view) copyQuery() url.Values {
	q := make(url.Values, len(v.query))
	for name, values := range v.query {
		q[name] = values
	}
	return q
}

// To returns the address of another page at the same moment.
func (v *view) To(path string, pairs ...string) string {
	q := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if v.past {
		q.Set("at", v.query.Get("at"))
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// With returns the address of this page with other parameters; "" removes a parameter.
func (v *view) With(pairs ...string) string {
	q := v.copyQuery()
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Del(pairs[i])
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return v.path
	}
	return v.path + "?" + q.Encode()
}

// When returns the address of this page at a commit; 0 is the present. It removes n, the index of an event, because it applies to one commit only.
func (v *view) When(seq uint64) string {
	if seq == 0 {
		return v.With("at", "", "n", "")
	}
	return v.With("at", strconv.FormatUint(seq, 10), "n", "")
}

// Kept returns the page's parameters except some, for the forms on the page.
func (v *view) Kept(but ...string) map[string]string {
	kept := make(map[string]string)
	for name := range v.query {
		kept[name] = v.query.Get(name)
	}
	for _, name := range but {
		delete(kept, name)
	}
	return kept
}

// Previous returns the commit before the moment, of the page's subject or else of the log; 0 if there is none.
func (v *view) Previous() uint64 {
	if a, ok := v.subject(); ok {
		if of := v.site.feed.Commits.Sequences(a, v.snapshot.Seq); len(of) > 1 {
			return of[len(of)-2]
		}
		return 0
	}
	return max(v.snapshot.Seq, 1) - 1
}

// Next returns the commit after the moment, of the page's subject or else of the log; 0 if there is none.
func (v *view) Next() uint64 {
	if a, ok := v.subject(); ok {
		before := len(v.site.feed.Commits.Sequences(a, v.snapshot.Seq))
		if of := v.site.feed.Commits.Sequences(a, v.head); len(of) > before {
			return of[before]
		}
		return 0
	}
	if v.snapshot.Seq < v.head {
		return v.snapshot.Seq + 1
	}
	return 0
}

// kit returns the commands' helpers, which know the location of the log.
func (v *view) kit() *kit.Kit { return v.site.kit }

// subject returns the aggregate of the page's subject.
func (v *view) subject() (eventlog.Aggregate, bool) {
	kind, ok := map[string]eventlog.Kind{"/run": eventlog.KindRun, "/move": eventlog.KindMove, "/pause": eventlog.KindPause, "/owner": eventlog.KindRemediation}[v.path]
	if v.path == "/object" {
		kind, ok = eventlog.Kind(v.query.Get("kind")), true
	}
	return eventlog.Aggregate{Kind: kind, ID: v.query.Get("id")}, ok
}

// Ago formats how long before the page's moment a time was.
func (v *view) Ago(t time.Time) string { return term.Ago(v.now, t) }

// command returns a command line that reads the page's log.
func (v *view) command(namespace string, words ...string) string {
	return v.site.kit.Hint(namespace, words...)
}

// number parses a parameter that counts from 0.
func (v *view) number(name string) (int, error) {
	value := v.query.Get(name)
	if value == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s is %q: it must be a number", ErrQuery, name, value)
	}
	return n, nil
}
