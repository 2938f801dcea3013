package page

import (
	"fmt"
	"io"
	"net/url"
	"strconv"
	"time"

	"scute.dev/cmd/ctl/term"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
)

// view is a page while it is made: a moment, and what was asked for.
type view struct {
	site  *Site
	world *feed.World
	path  string
	query url.Values
	past  bool
	head  uint64
	now   time.Time
}

// frame is what all pages have around their content.
type frame struct {
	*view
	Title   string
	Content any
	Part    bool // what an open page is told
}

// titled is a content that has a title.
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

// Where the log is.
func (v *view) Where() string { return v.site.where }

// Past says that the page shows a moment that was chosen, and does not change.
func (v *view) Past() bool { return v.past }

// Seq is the last commit that the page takes into account, Head that of the log.
func (v *view) Seq() uint64 { return v.world.Seq }

// Head is the last commit of the log.
func (v *view) Head() uint64 { return v.head }

// Moment is the time that durations until now are counted to: that of the page.
func (v *view) Moment() time.Time { return v.now }

// Stored is when the commit was stored.
func (v *view) Stored() time.Time { return v.world.Stored }

// Here says that a path is that of the page.
func (v *view) Here(path string) bool { return v.path == path }

// Live is the address of what changes while the log grows.
func (v *view) Live() string {
	q := v.copied()
	q.Set("after", strconv.FormatUint(v.world.Seq, 10))
	return "/live" + v.path + "?" + q.Encode()
}

func (v *view) copied() url.Values {
	q := make(url.Values, len(v.query))
	for name, values := range v.query {
		q[name] = values
	}
	return q
}

// To is the address of a page at the same moment.
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

// With is the address of this page with other parameters; "" takes one away.
func (v *view) With(pairs ...string) string {
	q := v.copied()
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

// When is the address of this page at a commit; 0 is the present. Which event of a commit is meant says nothing of another one.
func (v *view) When(seq uint64) string {
	if seq == 0 {
		return v.With("at", "", "n", "")
	}
	return v.With("at", strconv.FormatUint(seq, 10), "n", "")
}

// Kept are the parameters of this page but for some, for the forms on it.
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

// Previous and Next are the commits before and behind the moment: of what the page is about, or of the log.
func (v *view) Previous() uint64 {
	if a, ok := v.about(); ok {
		if of := v.site.feed.Commits.Of(a, v.world.Seq); len(of) > 1 {
			return of[len(of)-2]
		}
		return 0
	}
	return max(v.world.Seq, 1) - 1
}

// Next is the commit behind the moment; 0 if there is none.
func (v *view) Next() uint64 {
	if a, ok := v.about(); ok {
		before := len(v.site.feed.Commits.Of(a, v.world.Seq))
		if of := v.site.feed.Commits.Of(a, v.head); len(of) > before {
			return of[before]
		}
		return 0
	}
	if v.world.Seq < v.head {
		return v.world.Seq + 1
	}
	return 0
}

// about is the aggregate that the page is about.
func (v *view) about() (eventlog.Aggregate, bool) {
	kind, ok := map[string]eventlog.Kind{"/run": eventlog.KindRun, "/move": eventlog.KindMove, "/pause": eventlog.KindPause, "/owner": eventlog.KindRemediation}[v.path]
	return eventlog.Aggregate{Kind: kind, ID: v.query.Get("id")}, ok
}

// Ago says how long before the moment of the page a time was.
func (v *view) Ago(t time.Time) string { return term.Ago(v.now, t) }

// command is a command line that leads to the place where the page reads.
func (v *view) command(namespace string, words ...string) string {
	return v.site.kit.Hint(namespace, words...)
}

// number is a parameter that counts from 0.
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
