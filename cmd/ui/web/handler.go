package web

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"scute.dev/cmd/ui/act"
	"scute.dev/cmd/ui/feed"
	"scute.dev/cmd/ui/page"
	"scute.dev/cmd/ui/world"
)

// New serves the pages of a site to who has the token, and what the desk does; nil is none. hosts are the names of the server, with its port.
func New(site *page.Site, f *feed.Feed, desk *act.Desk, token string, hosts ...string) (http.Handler, error) {
	h := &handler{site: site, feed: f, desk: desk, drawn: newDrawn()}
	h.look = func(*http.Request) (look, error) { return look{site: site}, nil }
	mux, err := h.routes()
	if err != nil {
		return nil, err
	}
	mux.HandleFunc(proofs, h.proof)
	g := &guard{token: token, hosts: hosts, next: mux}
	if desk != nil {
		site.AllowActs()
		mux.HandleFunc("GET "+acts, h.confirm)
		mux.HandleFunc("POST "+acts, h.act)
		g.writes = acts
	}
	return g, nil
}

type handler struct {
	site  *page.Site
	feed  *feed.Feed
	desk  *act.Desk
	drawn *drawn
	// open are the pages that persons have open, and lines those that they wait for.
	open, lines lines
	// look is what a request may be shown; refuse answers one that is shown nothing, and over ends an open page of which that became true.
	look   func(*http.Request) (look, error)
	refuse func(http.ResponseWriter, *http.Request, error)
	over   func(*stream, *http.Request, error)
	// turn waits until a page of the past or of the present may be drawn; nil does not wait.
	turn func(ctx context.Context, past bool) (done func(), err error)
}

// look is what a request may be shown.
type look struct {
	site *page.Site
	// rights are the same for all who may see the same.
	rights string
	// person is whom an open page counts for; "" is not counted.
	person string
}

// routes are the addresses of the pages, and of what they load.
func (h *handler) routes() (*http.ServeMux, error) {
	assets, err := static()
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/static/", assets)
	for _, path := range h.site.Paths() {
		pattern := path
		if pattern == "/" {
			pattern = "/{$}"
		}
		mux.HandleFunc(pattern, h.page)
		mux.HandleFunc("/live"+pattern, h.live)
	}
	return mux, nil
}

func (h *handler) page(w http.ResponseWriter, r *http.Request) {
	l, err := h.look(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	done, err := h.inLine(r, l.person)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	body, err := drawAndGo(done, l.site, r)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	if err != nil {
		w.WriteHeader(status(err))
		body = l.site.Error(err)
	}
	_, _ = w.Write(body) // who has gone away reads no error
}

// drawAndGo draws a page and lets the next one be drawn, whatever happens: who reads slowly holds up no other.
func drawAndGo(done func(), site *page.Site, r *http.Request) ([]byte, error) {
	defer done()
	body, _, err := site.Page(r.URL.Path, r.URL.Query(), false)
	return body, err
}

// inLine waits until a page that a person asks for may be drawn.
func (h *handler) inLine(r *http.Request, person string) (done func(), err error) {
	leave, err := h.lines.wait(r.Context(), person, mostWaiting)
	if err != nil {
		return nil, err
	}
	drawn, err := h.wait(r, r.URL.Query().Get("at") != "")
	if err != nil {
		leave()
		return nil, err
	}
	return func() {
		drawn()
		leave()
	}, nil
}

// wait waits until a page may be drawn.
func (h *handler) wait(r *http.Request, past bool) (done func(), err error) {
	if h.turn == nil {
		return func() {}, nil
	}
	return h.turn(r.Context(), past)
}

func status(err error) int {
	switch {
	case errors.Is(err, world.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, page.ErrQuery):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// of is the path of the page that an address below /live is about.
func of(r *http.Request) string { return strings.TrimPrefix(r.URL.Path, "/live") }
