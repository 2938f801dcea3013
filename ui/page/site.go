package page

import (
	"bytes"
	"embed"
	"errors"
	"fmt"
	"html/template"
	"net/url"
	"strconv"
	"time"
	"unicode"
	"unicode/utf8"

	"scute.dev/cmd/ctl/audit"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/ui/feed"
)

//go:embed templates
var files embed.FS

// Site renders all pages about one log.
type Site struct {
	feed  *feed.Feed
	kit   *kit.Kit
	where string
	pages map[string]page

	// Actions enables actions on pages of the present.
	Actions bool
	// NoCommands omits commands, because no command can read this log, for example an export.
	NoCommands bool
	// Prover creates the proofs of commits. If it is nil, there are none.
	Prover *audit.Prover
}

type page struct {
	build    func(*view) (content any, err error)
	template *template.Template
	// commits is true if the page needs only commits and not the state of the log.
	commits bool
}

// ErrQuery means that a parameter in the address of a page is invalid.
var ErrQuery = errors.New("the address of the page is not valid")

// New returns the pages about a feed's log. where describes the location of the log.
func New(f *feed.Feed, k *kit.Kit, where string) (*Site, error) {
	s := &Site{feed: f, kit: k, where: where, pages: make(map[string]page)}
	base, err := template.New("frame.html").Funcs(functions()).ParseFS(files, "templates/frame.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	for path, p := range map[string]struct {
		file    string
		build   func(*view) (any, error)
		commits bool
	}{
		"/":       {file: "now.html", build: now},
		"/run":    {file: "run.html", build: run},
		"/move":   {file: "object.html", build: objectOf},
		"/pause":  {file: "object.html", build: objectOf},
		"/owner":  {file: "owner.html", build: owner},
		"/object": {file: "object.html", build: objectOf},
		"/fleet":  {file: "fleet.html", build: fleet},
		"/facts":  {file: "facts.html", build: facts, commits: true},
		"/event":  {file: "event.html", build: event, commits: true},
	} {
		t, err := base.Clone()
		if err != nil {
			return nil, err
		}
		if t, err = t.ParseFS(files, "templates/"+p.file); err != nil {
			return nil, err
		}
		s.pages[path] = page{build: p.build, template: t, commits: p.commits}
	}
	return s, nil
}

// Paths returns the paths of the pages.
func (s *Site) Paths() (paths []string) {
	for path := range s.pages {
		paths = append(paths, path)
	}
	return paths
}

// Page renders a page. If part is set, it renders only the part that changes with the log. It also
// returns the sequence of the commit that the page shows.
func (s *Site) Page(path string, query url.Values, part bool) ([]byte, uint64, error) {
	seq, at, err := s.moment(query.Get("at"))
	if err != nil {
		return nil, 0, err
	}
	past := query.Get("at") != ""
	var out bytes.Buffer
	build := func(w *feed.Snapshot) error {
		seq = w.Seq
		v := &view{site: s, Snapshot: w, Path: path, Query: query, Past: past, Head: s.feed.Commits.Head(), Where: s.where, Moment: s.kit.Env.Now()}
		switch { // unfinished durations end at the page's moment
		case past && at.IsZero():
			v.Moment = w.Stored
		case past && at.Before(v.Moment):
			v.Moment = at
		}
		return v.write(&out, part)
	}
	switch {
	case s.pages[path].commits:
		err = s.feed.Commit(seq, past, build)
	case past:
		err = s.feed.At(seq, build)
	default:
		err = s.feed.Now(build)
	}
	return cleanLines(out.Bytes()), seq, err
}

// cleanLines works like cli.Clean, but keeps line ends, which occur for example in the inputs of a
// task.
func cleanLines(body []byte) []byte {
	return bytes.Map(func(r rune) rune {
		if r == '\n' || r >= ' ' && r < unicode.MaxASCII {
			return r
		}
		clean, _ := utf8.DecodeRuneInString(cli.Clean(string(r)))
		return clean
	}, body)
}

// moment parses a sequence or a time. For a time it returns the sequence of the last commit stored
// at or before that time.
func (s *Site) moment(at string) (seq uint64, t time.Time, err error) {
	if seq, err = strconv.ParseUint(at, 10, 64); err == nil || at == "" {
		return seq, t, nil
	}
	var m kit.Moment
	if m.Set(at) != nil {
		return 0, t, fmt.Errorf("%w: at is %q: it must be the sequence of a commit, or a time such as 2026-01-02T15:04:05Z", ErrQuery, at)
	}
	m.Resolve(s.kit.Env.Now())
	return s.feed.Commits.At(m.Time), m.Time, nil
}

// Missing renders the changing part of an open page whose subject can no longer be shown because of
// err.
func Missing(err error) ([]byte, error) {
	return render("missing.html", err.Error())
}

// Error renders the page of an error.
func (s *Site) Error(err error) []byte {
	body, err := render("error.html", err.Error())
	if err != nil {
		return []byte("this page could not be rendered")
	}
	return body
}

func render(file string, content any) ([]byte, error) {
	t, err := template.New(file).Funcs(functions()).ParseFS(files, "templates/"+file, "templates/parts.html")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, content)
	return cleanLines(out.Bytes()), err
}
