package page

import (
	"bytes"
	"html/template"
	"net/url"
	"strings"
)

// SignInPath and SignOutPath are where a user signs in and out of pages that several share.
const (
	SignInPath  = "/sign-in"
	SignOutPath = "/sign-out"
)

// SignIn is the page with the form for a token. To is the page that is opened then.
type SignIn struct {
	To string
	// Wrong says why the last token was not taken.
	Wrong string
	// Audiences that the token must be for one of; those of the API server if empty.
	Audiences []string
	// Again asks for the page once more at once: a browser that follows a link of another site sends no cookie of the session.
	Again bool
}

// Command makes a token.
func (s SignIn) Command() string {
	command := "kubectl create token NAME --namespace NAMESPACE"
	if len(s.Audiences) > 0 {
		command += " --audience " + s.Audiences[0]
	}
	return command
}

// Draw is the page.
func (s SignIn) Draw() ([]byte, error) {
	t, err := template.New("signin.html").ParseFS(files, "templates/signin.html")
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, s)
	return cleaned(out.Bytes()), err
}

// Local is an address of a page of this site as it may lead there: of anything else it is the first page.
func (s *Site) Local(address string) string {
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "" || u.Host != "" || u.User != nil || strings.ContainsAny(address, "\\\r\n") || s.pages[u.Path].template == nil {
		return "/"
	}
	return (&url.URL{Path: u.Path, RawQuery: u.Query().Encode()}).String()
}

// SignInAt is the address at which a user signs in and then sees a page.
func SignInAt(to string) string { return SignInPath + "?" + url.Values{"to": {to}}.Encode() }

// Ended is what an open page has when its user may see it no more. to is the page.
func Ended(to string) ([]byte, error) { return instead("ended.html", SignInAt(to)) }

// Missing is what an open page has when what it is about may not be seen any more: err says what is not there.
func Missing(err error) ([]byte, error) { return instead("missing.html", err.Error()) }

// instead is what takes the place of what changes of an open page.
func instead(file string, of any) ([]byte, error) {
	t, err := template.New(file).ParseFS(files, "templates/"+file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = t.Execute(&out, of)
	return cleaned(out.Bytes()), err
}
