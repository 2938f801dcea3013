package page

import (
	"fmt"
	"io"
	"maps"
	"net/url"
	"strconv"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/ui/feed"
)

// view is the state of one request. Its exported fields are for the templates.
type view struct {
	site *Site
	// Snapshot is the state of the log. Its Seq is the last commit that the page includes.
	*feed.Snapshot
	Path  string
	Query url.Values
	// Past is true if the page shows a moment that the user chose, so that the page does not change.
	Past bool
	// Head is the sequence of the last commit in the log. Where is the location of the log.
	Head  uint64
	Where string
	Title string
	// Moment is the time of the page, at which unfinished durations end.
	Moment time.Time
}

type frame struct {
	*view
	Content any
	Part    bool // render only the part that changes
}

func (v *view) write(out io.Writer, part bool) error {
	p := v.site.pages[v.Path]
	content, err := p.build(v)
	if err != nil {
		return err
	}
	f := frame{view: v, Content: content, Part: part}
	name := "frame.html"
	if part {
		name = "live"
	}
	return p.template.ExecuteTemplate(out, name, f)
}

// Live returns the address from which the page receives updates.
func (v *view) Live() string {
	q := maps.Clone(v.Query)
	q.Set("after", strconv.FormatUint(v.Seq, 10))
	return "/live" + v.Path + "?" + q.Encode()
}

// To returns the address of another page at the same moment.
func (v *view) To(path string, pairs ...string) string {
	q := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if v.Past {
		q.Set("at", v.Query.Get("at"))
	}
	if len(q) == 0 {
		return path
	}
	return path + "?" + q.Encode()
}

// With returns the address of this page with other parameters; "" removes a parameter.
func (v *view) With(pairs ...string) string {
	q := maps.Clone(v.Query)
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Del(pairs[i])
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return v.Path
	}
	return v.Path + "?" + q.Encode()
}

// When returns the address of this page at a commit; 0 means the present. It drops the parameter n,
// which is an index within a commit.
func (v *view) When(seq uint64) string {
	if seq == 0 {
		return v.With("at", "", "n", "")
	}
	return v.With("at", strconv.FormatUint(seq, 10), "n", "")
}

// Kept returns the parameters of the page for the hidden fields of a form. It omits the parameters
// whose names are in but.
func (v *view) Kept(but ...string) map[string]string {
	kept := make(map[string]string)
	for name := range v.Query {
		kept[name] = v.Query.Get(name)
	}
	for _, name := range but {
		delete(kept, name)
	}
	return kept
}

// Previous returns the sequence of the commit before the page's commit, or 0. If the page has a
// subject, only commits of the subject count.
func (v *view) Previous() uint64 {
	if a := v.aggregate(); a.Kind != "" {
		if of := v.site.feed.Commits.Sequences(a, v.Seq); len(of) > 1 {
			return of[len(of)-2]
		}
		return 0
	}
	return max(v.Seq, 1) - 1
}

// Next returns the sequence of the commit after the page's commit, or 0. If the page has a subject,
// only commits of the subject count.
func (v *view) Next() uint64 {
	if a := v.aggregate(); a.Kind != "" {
		before := len(v.site.feed.Commits.Sequences(a, v.Seq))
		if of := v.site.feed.Commits.Sequences(a, v.Head); len(of) > before {
			return of[before]
		}
		return 0
	}
	if v.Seq < v.Head {
		return v.Seq + 1
	}
	return 0
}

// aggregate returns the aggregate that the page is about. Its Kind is empty if there is none.
func (v *view) aggregate() eventlog.Aggregate {
	kind := map[string]eventlog.Kind{"/run": eventlog.KindRun, "/move": eventlog.KindMove, "/pause": eventlog.KindPause, "/owner": eventlog.KindRemediation}[v.Path]
	if v.Path == "/object" {
		kind = eventlog.Kind(v.Query.Get("kind"))
	}
	return eventlog.Aggregate{Kind: kind, ID: v.Query.Get("id")}
}

// Ago formats how long before the page's moment a time was.
func (v *view) Ago(t time.Time) string { return cli.Ago(v.Moment, t) }

// number parses a parameter that is a number from 0 on. If the parameter is missing, it returns 0.
func (v *view) number(name string) (int, error) {
	value := v.Query.Get(name)
	if value == "" {
		return 0, nil
	}
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("%w: %s is %q: it must be a number", ErrQuery, name, value)
	}
	return n, nil
}

type stream struct {
	View  *view
	Facts []fact
	// Alone is true if all facts are about the page's subject.
	Alone bool
}

// Stream returns a list of facts about any subject.
func (f frame) Stream(facts []fact) stream { return stream{View: f.view, Facts: facts} }

// Alone returns a list of facts about the page's subject.
func (f frame) Alone(facts []fact) stream { return stream{View: f.view, Facts: facts, Alone: true} }

// within contains a view together with the data of a part of the page. The template of the part
// needs the view for links.
type within struct {
	View *view
	Of   any
}

// Within returns the data of a part of the page together with the view.
func (v *view) Within(of any) within { return within{v, of} }

type choice struct {
	Name, Value string
	Chosen      bool
}

// Kinds returns the kinds of aggregates, as options of the filter of facts.
func (v *view) Kinds() []choice {
	asked := v.Query.Get("kind")
	all := []choice{{Name: "anything", Chosen: asked == ""}}
	for _, kind := range kit.Kinds() {
		all = append(all, choice{Name: kind, Value: kind, Chosen: asked == kind})
	}
	return all
}

const rowsPerPage = 50

// longList describes a list that is shown in pages of Rows rows. Param is the query parameter with
// the number of the page, and Anchor the anchor of the list, for example "#list".
type longList struct {
	Param, Label, Anchor string
	Rows                 int
}

// position is a position in a list of All elements. It has links to the previous and the next page
// of the list.
type position struct {
	Label            string
	All, Page, Pages int
	Before, Next     string
}

// paged returns the rows on the page that the query selects. By default that is the first page.
func paged[T any](v *view, of longList, list []T) ([]T, position, error) {
	page, err := v.number(of.Param)
	if err != nil {
		return nil, position{}, err
	}
	p := position{Label: of.Label, All: len(list), Pages: (len(list) + of.Rows - 1) / of.Rows}
	p.Page = min(page, max(p.Pages-1, 0))
	switch p.Page {
	case 0:
	case 1:
		p.Before = v.With(of.Param, "") + of.Anchor
	default:
		p.Before = v.With(of.Param, strconv.Itoa(p.Page-1)) + of.Anchor
	}
	if p.Page+1 < p.Pages {
		p.Next = v.With(of.Param, strconv.Itoa(p.Page+1)) + of.Anchor
	}
	return list[p.Page*of.Rows : min(len(list), (p.Page+1)*of.Rows)], p, nil
}
