package ui

import "net/http"

// policy is the Content-Security-Policy: a page loads files only from this server and runs no inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets the headers of every response: no other site may embed it, read it or see its address, and no cache stores it.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers omit the origin of a form
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// isCrossSite reports whether a page of another site made the request, except by a link.
func isCrossSite(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	return from != "" && from != "same-origin" && from != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
