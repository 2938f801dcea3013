package web

import (
	"embed"
	"io/fs"
	"net/http"
)

// files are what pages load: our style sheet, and htmx with its extension for server-sent events, as the npm package htmx.org has them.
// The test holds their checksums.
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
