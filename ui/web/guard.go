package web

import (
	"crypto/subtle"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// guard lets in who has the token, and only requests that were meant for this server: neither the page of another site nor a name
// that was made to lead here (DNS rebinding) reads anything.
type guard struct {
	token string
	// hosts are the names of the server, with the port.
	hosts []string
	// writes is the one path that takes forms; "" is none.
	writes string
	next   http.Handler
}

func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	protect(h)
	switch {
	case !g.meant(r):
		http.Error(w, "This address is not served here: use the one that was printed at its start.", http.StatusForbidden)
	case r.Method == http.MethodPost && g.writes != "" && r.URL.Path == g.writes:
		g.form(w, r)
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		h.Set("Allow", "GET, HEAD")
		http.Error(w, "Nothing can be changed here.", http.StatusMethodNotAllowed)
	case g.same(r.URL.Query().Get("token")):
		g.admit(w, r)
	case !g.admitted(r):
		http.Error(w, "The token is missing: use the address that was printed at its start, with its token.", http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// form lets a form in that was sent by a page of this server: a browser says so in Origin, and cannot be made to say it for another page.
func (g *guard) form(w http.ResponseWriter, r *http.Request) {
	from := r.Header.Get("Sec-Fetch-Site")
	switch {
	case r.Header.Get("Origin") != "http://"+r.Host || from != "" && from != "same-origin":
		http.Error(w, "This form was not sent by a page of this server: nothing was done.", http.StatusForbidden)
	case !g.admitted(r):
		http.Error(w, "The token is missing: use the address that was printed at its start, with its token.", http.StatusUnauthorized)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// meant says that a request names this server, and does not come from the page of another one. A link of another page may lead here:
// the cookie does not come along.
func (g *guard) meant(r *http.Request) bool {
	origin := r.Header.Get("Origin")
	switch {
	case !slices.Contains(g.hosts, r.Host):
		return false
	case origin != "" && !slices.Contains(g.hosts, strings.TrimPrefix(origin, "http://")):
		return false
	default:
		return !foreign(r)
	}
}

func (g *guard) same(token string) bool {
	return token != "" && subtle.ConstantTimeCompare([]byte(token), []byte(g.token)) == 1
}

// cookie is the name of the cookie: all ports of a machine share their cookies.
func (g *guard) cookie(r *http.Request) string {
	_, port, _ := strings.Cut(r.Host, ":")
	return "scute-ui-" + port
}

func (g *guard) admitted(r *http.Request) bool {
	c, err := r.Cookie(g.cookie(r))
	return err == nil && g.same(c.Value)
}

// admit takes the token out of the address, so that it is neither in the history of the browser nor copied with a link.
func (g *guard) admit(w http.ResponseWriter, r *http.Request) {
	http.SetCookie(w, &http.Cookie{Name: g.cookie(r), Value: g.token, Path: "/", HttpOnly: true, SameSite: http.SameSiteStrictMode})
	q := r.URL.Query()
	q.Del("token")
	http.Redirect(w, r, (&url.URL{Path: "/" + strings.TrimLeft(r.URL.Path, "/"), RawQuery: q.Encode()}).String(), http.StatusSeeOther)
}
