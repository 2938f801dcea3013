package web

import (
	"errors"
	"net/http"
	"strings"

	"scute.dev/cmd/ui/access"
	"scute.dev/cmd/ui/page"
)

// ask shows the form for a token.
func (d *gateway) ask(w http.ResponseWriter, r *http.Request) {
	from := r.Header.Get("Sec-Fetch-Site")
	to := d.Site.Local(r.URL.Query().Get("to"))
	if d.visit(r).token != "" { // a link of another site led here, and the cookie did not come along before
		http.Redirect(w, r, to, http.StatusSeeOther)
		return
	}
	d.form(w, http.StatusOK, page.SignIn{To: to, Audiences: d.Audiences, Again: from == "cross-site" || from == "same-site"})
}

func (d *gateway) form(w http.ResponseWriter, code int, form page.SignIn) {
	body, err := form.Draw()
	if err != nil {
		code, body = http.StatusInternalServerError, d.Site.Error(err)
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(body) // who has gone away reads no error
}

// signIn begins a session for who has a valid token.
func (d *gateway) signIn(w http.ResponseWriter, r *http.Request) {
	form := page.SignIn{To: "/", Audiences: d.Audiences}
	if err := r.ParseForm(); err != nil {
		form.Wrong = "The form could not be read: send it again."
		d.form(w, http.StatusBadRequest, form)
		return
	}
	form.To = d.Site.Local(r.PostForm.Get("to"))
	v := visit{token: strings.TrimSpace(r.PostForm.Get("token"))}
	user, err := d.review(r, v)
	switch {
	case errors.Is(err, access.ErrToken):
		form.Wrong = "The API server does not accept this token: it is not valid, expired, or meant for another audience."
		d.form(w, http.StatusUnauthorized, form)
		return
	case errors.Is(err, errOften):
		form.Wrong = sentence(err)
		d.form(w, http.StatusTooManyRequests, form)
		return
	case err != nil:
		form.Wrong = sentence(err)
		d.form(w, http.StatusServiceUnavailable, form)
		return
	}
	if before := d.visit(r); before.session != "" {
		d.Sessions.End(before.session)
	}
	d.Logger.Info("a user signed in to the pages", "user", user.Name(), "from", d.client(r))
	d.set(w, r, d.Sessions.Begin(user.Name(), v.token), 0)
	http.Redirect(w, r, form.To, http.StatusSeeOther)
}

// signOut ends the session.
func (d *gateway) signOut(w http.ResponseWriter, r *http.Request) {
	if c, err := r.Cookie(d.cookie()); err == nil {
		d.Sessions.End(c.Value)
	}
	d.set(w, r, "", -1)
	http.Redirect(w, r, page.SignInPath, http.StatusSeeOther)
}

// set keeps the id of a session in the browser, or removes it. Where a browser came by TLS, it sends it by TLS alone.
func (d *gateway) set(w http.ResponseWriter, r *http.Request, id string, age int) {
	http.SetCookie(w, &http.Cookie{
		Name: d.cookie(), Value: id, Path: "/", MaxAge: age, HttpOnly: true, SameSite: http.SameSiteStrictMode,
		Secure: d.TLS || strings.HasPrefix(r.Header.Get("Origin"), "https://"),
	})
}

// sentence begins with a capital and ends with a stop.
func sentence(err error) string {
	text := err.Error()
	return strings.ToUpper(text[:1]) + text[1:] + "."
}
