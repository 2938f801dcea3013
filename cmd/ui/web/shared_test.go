package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	authentication "k8s.io/api/authentication/v1"
	authorization "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/cmd/ui/access"
	"scute.dev/cmd/ui/feed"
	"scute.dev/cmd/ui/page"
	"scute.dev/cmd/ui/signin"
	"scute.dev/cmd/ui/uitest"
	"scute.dev/eventlog/logtest"
)

// cluster answers reviews: a user may list everything in the namespaces that it has.
type cluster struct {
	mu     sync.Mutex
	users  map[string]string   // by token
	may    map[string][]string // namespaces, "" is all
	down   bool
	asked  int
	Logged bytes.Buffer
}

type tokenReviews struct{ *cluster }

func (c tokenReviews) Create(_ context.Context, r *authentication.TokenReview, _ metav1.CreateOptions) (*authentication.TokenReview, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.asked++
	if c.down {
		return nil, errors.New("dial tcp 10.1.2.3:6443: refused")
	}
	name, ok := c.users[r.Spec.Token]
	r.Status = authentication.TokenReviewStatus{Authenticated: ok, User: authentication.UserInfo{Username: name}}
	return r, nil
}

type accessReviews struct{ *cluster }

func (c accessReviews) Create(_ context.Context, r *authorization.SubjectAccessReview, _ metav1.CreateOptions) (*authorization.SubjectAccessReview, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.down {
		return nil, errors.New("dial tcp 10.1.2.3:6443: refused")
	}
	r.Status.Allowed = slices.Contains(c.may[r.Spec.User], r.Spec.ResourceAttributes.Namespace)
	return r, nil
}

// place is a server of the pages with what is around it.
type place struct {
	*cluster
	gateway  *gateway
	sessions *signin.Sessions
	feed     *feed.Feed
}

// newPlace has runs and moves in the namespaces fleet and other.
func newPlace(t testing.TB, change func(*Shared)) *place {
	t.Helper()
	log, f := logtest.Open(t), uitest.Feed(t)
	all := uitest.Saved(t, "../../..", "rolled-back", "target-wiped")
	theirs := uitest.Saved(t, "../../..", "timed-out", "decided-to-retry")
	for _, h := range theirs {
		h.Of.ID = strings.Replace(h.Of.ID, "fleet/", "other/", 1)
	}
	uitest.Interleaved(t, log, append(all, theirs...))
	uitest.Fill(t, f, log)
	site, err := page.New(f, &kit.Kit{Env: &cli.Env{Name: "scutectl", Now: time.Now}, Flags: connect.New()}, "the log")
	if err != nil {
		t.Fatal(err)
	}
	p := &place{
		cluster:  &cluster{users: map[string]string{"good": "ada", "all": "root", "none": "eve"}, may: map[string][]string{"ada": {"fleet"}, "root": {""}}},
		sessions: &signin.Sessions{Life: time.Hour, Idle: time.Hour}, feed: f,
	}
	s := &Shared{
		Site: site, Feed: f, Sessions: p.sessions, Hosts: []string{"127.0.0.1", "pages.example"}, Unready: func() error { return nil },
		Logger:   slog.New(slog.NewTextHandler(&p.Logged, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Reviewer: &access.Reviewer{Tokens: tokenReviews{p.cluster}, Access: accessReviews{p.cluster}, Keep: time.Nanosecond},
	}
	if change != nil {
		change(s)
	}
	h, err := s.Handler()
	if err != nil {
		t.Fatal(err)
	}
	p.gateway, _ = h.(*gateway)
	return p
}

// ask sends a request; a form is sent as a browser sends it.
func (p *place) ask(t *testing.T, target string, form url.Values, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if form != nil {
		method, body = http.MethodPost, strings.NewReader(form.Encode())
	}
	r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+target, body)
	if form != nil {
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://"+host)
	}
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	p.gateway.ServeHTTP(w, r)
	return w
}

// signedIn signs in, and gives the cookie.
func (p *place) signedIn(t *testing.T, token string) string {
	t.Helper()
	w := p.ask(t, "/sign-in", url.Values{"token": {token}, "to": {"/fleet?at=3"}})
	cookies := w.Result().Cookies()
	if w.Code != http.StatusSeeOther || w.Header().Get("Location") != "/fleet?at=3" || len(cookies) != 1 {
		t.Fatalf("%d %v: %s", w.Code, w.Header(), w.Body)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Path != "/" || c.Domain != "" || c.MaxAge != 0 || strings.Contains(c.Value, token) {
		t.Errorf("cookie %v", c)
	}
	return c.Name + "=" + c.Value
}

// TestWhoSignsInSeesTheirs, by the form or by a header, and nobody else anything.
func TestWhoSignsInSeesTheirs(t *testing.T) {
	p := newPlace(t, nil)
	cookie := p.signedIn(t, "good")
	for name, c := range map[string]struct {
		target string
		header []string
		code   int
		has    []string
		hasNot []string
	}{
		"nobody":             {"/run?id=fleet%2Frolled-back%2F1", nil, http.StatusSeeOther, nil, []string{"target-wiped"}},
		"a wrong cookie":     {"/", []string{"Cookie", "scute-ui=guess"}, http.StatusSeeOther, nil, []string{"rolled-back"}},
		"nobody's stream":    {"/live/", nil, http.StatusUnauthorized, nil, []string{"rolled-back"}},
		"a session":          {"/", []string{"Cookie", cookie}, http.StatusOK, []string{"rolled-back", "target-wiped", ">ada<", "Sign out"}, []string{"timed-out", "decided-to-retry"}},
		"a search":           {"/facts?text=decided-to-retry", []string{"Cookie", cookie}, http.StatusOK, []string{"No fact matches"}, []string{"other/"}},
		"the past":           {"/?at=9", []string{"Cookie", cookie}, http.StatusOK, []string{"rolled-back"}, []string{"timed-out"}},
		"another's":          {"/pause?id=other%2Ftimed-out%2F1", []string{"Cookie", cookie}, http.StatusNotFound, nil, []string{"Acknowledged"}},
		"a proxy":            {"/", []string{"Authorization", "bearer all"}, http.StatusOK, []string{"rolled-back", "timed-out", ">root<"}, []string{"Sign out"}},
		"a proxy's guess":    {"/", []string{"Authorization", "Bearer guess", "Cookie", cookie}, http.StatusUnauthorized, nil, []string{"rolled-back"}},
		"no rights":          {"/", []string{"Authorization", "Bearer none"}, http.StatusOK, []string{"Up to commit 0"}, []string{"rolled-back", "timed-out"}},
		"a proof":            {"/proof?commit=1", []string{"Cookie", cookie}, http.StatusNotFound, nil, []string{"sequence"}},
		"an action":          {"/act?do=pause&kind=run&namespace=fleet&name=rolled-back", []string{"Cookie", cookie}, http.StatusNotFound, nil, []string{"Pause"}},
		"a token in the URL": {"/?token=good", nil, http.StatusSeeOther, nil, []string{"rolled-back"}},
		"the style sheet":    {"/static/style.css", nil, http.StatusOK, nil, nil},
		"another name":       {"/", []string{"Cookie", cookie, "Host", "evil.example"}, http.StatusForbidden, nil, []string{"rolled-back"}},
		"one of its names":   {"/", []string{"Cookie", cookie, "Host", "pages.example"}, http.StatusOK, []string{"rolled-back"}, nil},
		"another origin":     {"/", []string{"Cookie", cookie, "Origin", "https://evil.example"}, http.StatusForbidden, nil, []string{"rolled-back"}},
		"impersonation":      {"/", []string{"Authorization", "Bearer all", "Impersonate-User", "ada"}, http.StatusForbidden, nil, []string{"rolled-back"}},
		"another site":       {"/live/", []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, http.StatusForbidden, nil, []string{"rolled-back"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := p.ask(t, c.target, nil, c.header...)
			body := w.Body.String()
			if w.Code != c.code {
				t.Errorf("%d, want %d: %s", w.Code, c.code, body)
			}
			for _, part := range c.has {
				if !strings.Contains(body, part) {
					t.Errorf("it has not %q:\n%s", part, body)
				}
			}
			for _, part := range c.hasNot {
				if strings.Contains(body, part) {
					t.Errorf("it has %q:\n%s", part, body)
				}
			}
			if got := w.Header().Get("Content-Security-Policy"); got != policy {
				t.Errorf("policy %q", got)
			}
		})
	}
	if w := p.ask(t, "/", url.Values{}, "Cookie", cookie); w.Code != http.StatusMethodNotAllowed {
		t.Errorf("a form to a page: %d", w.Code)
	}
	if got := p.Logged.String(); strings.Contains(got, "good") || strings.Contains(got, "guess") || !strings.Contains(got, "user=ada") {
		t.Errorf("logged:\n%s", got)
	}
}

// TestWhereSignInLeads is a page of this server.
func TestWhereSignInLeads(t *testing.T) {
	p := newPlace(t, nil)
	w := p.ask(t, "/run?id=fleet%2Frolled-back%2F1&task=a", nil)
	at := w.Header().Get("Location")
	if w = p.ask(t, at, nil); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `name="to" value="/run?id=fleet%2Frolled-back%2F1&amp;task=a"`) {
		t.Errorf("%s leads to %d %s", at, w.Code, w.Body)
	}
	for _, to := range []string{"//evil.example/", "https://evil.example/", `/\evil.example`, "/sign-in", "/static/style.css", "javascript:alert(1)", "/live/", "/\tevil", ""} {
		if w := p.ask(t, "/sign-in", url.Values{"token": {"good"}, "to": {to}}); w.Header().Get("Location") != "/" {
			t.Errorf("%q leads to %q", to, w.Header().Get("Location"))
		}
	}
	if w := p.ask(t, "/sign-in?to=%2Ffleet", nil, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"); !strings.Contains(w.Body.String(), `http-equiv="refresh" content="0"`) {
		t.Errorf("a link of another site ends at the form though there may be a session: %s", w.Body)
	}
	cookie := p.signedIn(t, "good")
	if w := p.ask(t, "/sign-in?to=%2Ffleet", nil, "Cookie", cookie); w.Header().Get("Location") != "/fleet" {
		t.Errorf("who is signed in is asked again: %d", w.Code)
	}
}

func TestFormsOfOthersAreRefused(t *testing.T) {
	p := newPlace(t, nil)
	cookie := p.signedIn(t, "good")
	for _, header := range [][]string{
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
		{"Origin", ""},
		{"Sec-Fetch-Site", "same-site"},
		{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"},
		{"Host", "evil.example", "Origin", "http://evil.example"},
	} {
		for _, target := range []string{"/sign-in", "/sign-out"} {
			w := p.ask(t, target, url.Values{"token": {"all"}}, append(header, "Cookie", cookie)...)
			if w.Code != http.StatusForbidden || len(w.Result().Cookies()) > 0 {
				t.Errorf("%s with %v: %d", target, header, w.Code)
			}
		}
	}
	if w := p.ask(t, "/", nil, "Cookie", cookie); w.Code != http.StatusOK {
		t.Errorf("somebody else signed the user out: %d", w.Code)
	}
	p.ask(t, "/sign-out", url.Values{}, "Cookie", cookie)
	if w := p.ask(t, "/", nil, "Cookie", cookie); w.Code != http.StatusSeeOther {
		t.Errorf("who has signed out sees the page: %d", w.Code)
	}
}

// TestByTLS has a cookie that no other server of the host can set or read, and takes no form of a page without TLS.
func TestByTLS(t *testing.T) {
	p := newPlace(t, func(s *Shared) { s.TLS, s.Hosts = true, nil })
	if w := p.ask(t, "/sign-in", url.Values{"token": {"good"}}); w.Code != http.StatusForbidden {
		t.Errorf("a form of a page without TLS: %d", w.Code)
	}
	w := p.ask(t, "/sign-in", url.Values{"token": {"good"}}, "Origin", "https://"+host)
	if c := w.Result().Cookies(); len(c) != 1 || !c[0].Secure || !strings.HasPrefix(c[0].Name, "__Host-") {
		t.Errorf("%d, cookies %v", w.Code, c)
	}
	p = newPlace(t, nil) // behind what ends TLS
	w = p.ask(t, "/sign-in", url.Values{"token": {"good"}}, "Host", "10.0.0.1:8082", "Host", "pages.example", "Origin", "https://pages.example")
	if c := w.Result().Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("%d, cookies %v", w.Code, c)
	}
}

// TestGuessesAreBounded: the API server is not asked about every token that somebody makes up, and who is signed in is not held up.
func TestGuessesAreBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes, and with it no guess is forgiven
		p := newPlace(t, nil)
		cookie := p.signedIn(t, "good")
		before, refused := p.asked, 0
		for range 100 {
			w := p.ask(t, "/sign-in", url.Values{"token": {"guess"}})
			switch w.Code {
			case http.StatusTooManyRequests:
				refused++
			case http.StatusUnauthorized:
			default:
				t.Fatalf("%d %s", w.Code, w.Body)
			}
			if strings.Contains(w.Body.String(), "guess") || len(w.Result().Cookies()) > 0 {
				t.Fatalf("the token is on the page:\n%s", w.Body)
			}
		}
		if asked := p.asked - before; refused < 20 || asked != 100-refused {
			t.Errorf("%d of 100 were refused, the API server was asked %d times", refused, asked)
		}
		if w := p.ask(t, "/", nil, "Cookie", cookie); w.Code != http.StatusOK {
			t.Errorf("who is signed in: %d", w.Code)
		}
		if w := p.ask(t, "/sign-in", url.Values{"token": {strings.Repeat("x", formBytes)}}); w.Code != http.StatusBadRequest {
			t.Errorf("a form that is too large: %d", w.Code)
		}
	})
}

// TestGuessesBehindAProxy hold up who guesses, and not the others whom the proxy serves, until they are too many for one proxy.
func TestGuessesBehindAProxy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // in which no time passes, and with it no guess is forgiven
		p := newPlace(t, func(s *Shared) { s.Proxied = true })
		guess := func(from ...string) int {
			header := []string{}
			for _, one := range from {
				header = append(header, "X-Forwarded-For", one)
			}
			return p.ask(t, "/sign-in", url.Values{"token": {"guess"}}, header...).Code
		}
		for range 40 {
			guess("6.6.6.6, 192.0.2.1")
		}
		if code := guess("192.0.2.1"); code != http.StatusTooManyRequests {
			t.Errorf("who guesses: %d", code)
		}
		if code := guess("192.0.2.1, 192.0.2.2"); code != http.StatusUnauthorized {
			t.Errorf("another one: %d", code)
		}
		for i := range 600 {
			guess(fmt.Sprintf("2001:db8:0:%x::1", i))
		}
		if code := guess("192.0.2.3"); code != http.StatusTooManyRequests {
			t.Errorf("after 600 guesses from as many addresses: %d", code)
		}
		direct := newPlace(t, nil)
		for range 40 {
			direct.ask(t, "/sign-in", url.Values{"token": {"guess"}})
		}
		if w := direct.ask(t, "/sign-in", url.Values{"token": {"guess"}}, "X-Forwarded-For", "192.0.2.9"); w.Code != http.StatusTooManyRequests {
			t.Errorf("without a proxy a client chooses what it is counted as: %d", w.Code)
		}
	})
}

// TestWithoutAnswer of the API server nothing is shown, and its address is not told.
func TestWithoutAnswer(t *testing.T) {
	var unready error
	p := newPlace(t, func(s *Shared) { s.Unready = func() error { return unready } })
	cookie := p.signedIn(t, "good")
	p.down = true
	for _, w := range []*httptest.ResponseRecorder{p.ask(t, "/", nil, "Cookie", cookie), p.ask(t, "/sign-in", url.Values{"token": {"all"}})} {
		if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "rolled-back") || strings.Contains(w.Body.String(), "10.1.2.3") {
			t.Errorf("%d %s", w.Code, w.Body)
		}
	}
	p.down, unready = false, errors.New("it is being read")
	if w := p.ask(t, "/", nil, "Cookie", cookie); w.Code != http.StatusServiceUnavailable || !strings.Contains(w.Body.String(), "it is being read") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	unready = nil
	if w := p.ask(t, "/", nil, "Cookie", cookie); w.Code != http.StatusOK {
		t.Errorf("the session ended: %d", w.Code)
	}
}

// TestOpenPagesEnd: of an open page, what may not be seen any more goes at the next beat, and all of it with the token.
func TestOpenPagesEnd(t *testing.T) {
	p := newPlace(t, nil)
	bubble(t, p, func(t *testing.T, dial func() net.Conn) {
		cookie := p.signedIn(t, "good") // by the clock of the bubble
		open, proxy, proxied := followAs(t, dial(), "Cookie: "+cookie), followAs(t, dial(), "Authorization: Bearer all"), make(chan string)
		go func() {
			all, err := io.ReadAll(proxy)
			proxied <- fmt.Sprint(string(all), err)
		}()
		expect(t, open, "rolled-back")
		p.change(func() { p.may["ada"] = nil })
		expect(t, open, "Up to commit 0")
		p.change(func() { clear(p.users) })
		expect(t, open, "Sign in again")
		if rest, err := io.ReadAll(open); err != nil || strings.Contains(string(rest), "rolled-back") {
			t.Errorf("the page continues: %v\n%s", err, rest)
		}
		if all := <-proxied; !strings.Contains(all, "timed-out") || !strings.HasSuffix(all, "<nil>") || strings.Contains(all, "Sign in") {
			t.Errorf("the page of a proxy's user:\n%s", all)
		}
	})
}

func (c *cluster) change(fn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	fn()
}
