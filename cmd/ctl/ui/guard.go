package ui

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard passes on requests that contain the token and name this server as the host. It thus blocks
// pages of other sites, and DNS rebinding.
type guard struct {
	token string
	// hosts are the names of the server, with the port.
	hosts []string
	// formPath is the only path that accepts forms; "" means none.
	formPath string
	next     http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	protect(h)
	switch {
	case !g.isOwnRequest(r):
		http.Error(w, "This address is not served: use the address that was printed when the server started.", http.StatusForbidden)
	case r.Method == http.MethodPost && g.formPath != "" && r.URL.Path == g.formPath:
		g.form(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Changes are not permitted here.", http.StatusMethodNotAllowed)
	case g.matchesToken(r.URL.Query().Get("token")):
		g.admit(w, r)
	case !g.hasCookie(r):
		http.Error(w, "The token is missing: use the address with the token that was printed when the server started.", http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// form passes on a form if its Origin is this server. In a browser, a page of another site cannot
// forge the Origin.
func (g *guard) form(w http.ResponseWriter, r *http.Request) {
	from := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Header.Get("Origin") != "http://"+r.Host || from != "" && from != "same-origin":
		http.Error(w, "This form was not sent by a page of this server: nothing was changed.", http.StatusForbidden)
	case !g.hasCookie(r):
		http.Error(w, "The token is missing: use the address with the token that was printed when the server started.", http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// isOwnRequest reports whether a request names this server and is not from a page of another site.
// Links of other sites are allowed, because the browser sends no cookie with them.
func (g *guard) isOwnRequest(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	switch {
	case !slices.Contains(g.hosts, r.Host):
		return false
	case origin != "" && !slices.Contains(g.hosts, strings.TrimPrefix(origin, "http://")):
		return false
	default:
		return !isCrossSite(r)
	}
}

func (g *guard) matchesToken(token string) bool {
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// cookie returns the name of the cookie. The name contains the port, because all ports of a host
// share their cookies.
func (g *guard) cookie(r *http.Request) string {
	_, port, _ := strings.Cut(r.Host, ":")
	return "scute-ui-" + port
}

func (g *guard) hasCookie(r *http.Request) bool {
	c, err := r.Cookie(g.cookie(r))
	return err == nil && g.matchesToken(c.Value)
}

// admit sets the cookie and redirects to the address without the token, so that the token is
// neither in the browser's history nor in copied links.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: g.cookie(r), Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	q := r.URL.Query()
	q.Del("token")
	http.Redirect(w, r, (&url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: q.Encode()}).String(), http.StatusSeeOther)
}

// policy is a Content-Security-Policy that lets a page load files only from this server, and run no
// inline script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

// protect sets the headers of every response. With them, no other site can embed the response, read
// it or see its address, and no cache stores it.
func protect(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "same-origin") // with no-referrer, browsers omit the origin of a form
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// isCrossSite reports whether a page of another site made the request. A link on another site does
// not count.
func isCrossSite(r *http.Request) bool {
	from := r.Header.Get("Sec-Fetch-Site")
	return from != "" && from != "same-origin" && from != "none" && r.Header.Get("Sec-Fetch-Mode") != "navigate"
}
