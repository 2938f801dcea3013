package ui

import (
	"embed"
	"errors"
	"io/fs"
	"net/http"

	"scute.dev/ui/feed"
	"scute.dev/ui/page"
)

// newHandler returns a handler that serves a site to clients with the token. Actions are enabled if
// desk is not nil. hosts are the names of the server, with its port.
func newHandler(site *page.Site, f *feed.Feed, desk *desk, token string, hosts ...string) (http.Handler, error) {
	h := &handler{site: site, feed: f, desk: desk}
	mux, err := h.routes()
	if err != nil {
		return nil, err
	}
	mux.HandleFunc(proofPath, h.proof)
	g := &guard{token: token, hosts: hosts, next: mux}
	if desk != nil {
		site.Actions = true
		mux.HandleFunc("GET "+actPath, h.confirm)
		mux.HandleFunc("POST "+actPath, h.act)
		g.formPath = actPath
	}
	return g, nil
}

type handler struct {
	site *page.Site
	feed *feed.Feed
	desk *desk
}

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
	body, _, err := h.site.Page(r.URL.Path, r.URL.Query(), false)
	h.write(w, http.StatusOK, body, err)
}

func status(err error) int {
	switch {
	case errors.Is(err, feed.ErrNotFound):
		return http.StatusNotFound
	case errors.Is(err, page.ErrQuery):
		return http.StatusBadRequest
	default:
		return http.StatusInternalServerError
	}
}

// files are the files that pages load: the style sheet, and htmx with its extension for server-sent
// events, unchanged from the npm package htmx.org. A test checks their checksums.
//
//go:embed static
var files embed.FS

func static() (http.Handler, error) {
	below, err := fs.Sub(files, "static")
	if err != nil {
		return nil, err
	}
	return http.StripPrefix("/static/", http.FileServerFS(below)), nil
}
