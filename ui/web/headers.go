package web

import "net/http"

// policy lets a page load nothing but what is served here, and run no script that is written in it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets what every answer has: no other site may embed it, read it or learn its address, and nothing keeps it.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer a browser does not say where a form comes from
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// foreign says that a request was made by the page of another site, and is not the following of a link.
func foreign(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	return from != "" && from != "same-origin" && from != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
