package ui

import (
	"embed"
	"io/fs"
	"net/http"
)

// files are the files that pages load: the style sheet, and htmx with its extension for server-sent events, unchanged from the npm package htmx.org.
// A test checks their checksums.
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
