package ui

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

const (
	host  = "127.0.0.1:4711"
	token = "sesame"
)

func newGuard() *guard {
	return &guard{token: token, hosts: []string{host, "localhost:4711"}, next: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("page"))
	})}
}

// sendRequest sends a request as a browser does.
func sendRequest(t *testing.T, method, target string, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+target, http.NoBody)
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	newGuard().ServeHTTP(w, r)
	return w
}

func TestGuard(t *testing.T) {
	const cookie = "scute-ui-4711=" + token
	for name, c := range map[string]struct {
		method, target string
		header         []string
		want           int
	}{
		"no token":              {target: "/", want: http.StatusUnauthorized},
		"another token":         {target: "/?token=guess", want: http.StatusUnauthorized},
		"an empty token":        {target: "/?token=", want: http.StatusUnauthorized},
		"the token":             {target: "/?token=" + token, want: http.StatusSeeOther},
		"the cookie":            {target: "/run", header: []string{"Cookie", cookie}, want: http.StatusOK},
		"another cookie":        {target: "/", header: []string{"Cookie", "scute-ui-4711=guess"}, want: http.StatusUnauthorized},
		"another port's cookie": {target: "/", header: []string{"Cookie", "scute-ui-4712=" + token}, want: http.StatusUnauthorized},
		"localhost":             {target: "/", header: []string{"Cookie", cookie, "Host", "localhost:4711"}, want: http.StatusOK},
		"another name (DNS rebinding)": {
			target: "/", header: []string{"Cookie", cookie, "Host", "evil.example:4711"}, want: http.StatusForbidden,
		},
		"another port":            {target: "/", header: []string{"Cookie", cookie, "Host", "127.0.0.1:80"}, want: http.StatusForbidden},
		"another name with token": {target: "/?token=" + token, header: []string{"Host", "evil.example:4711"}, want: http.StatusForbidden},
		"our origin":              {target: "/", header: []string{"Cookie", cookie, "Origin", "http://" + host}, want: http.StatusOK},
		"another origin":          {target: "/", header: []string{"Cookie", cookie, "Origin", "https://evil.example"}, want: http.StatusForbidden},
		"no origin":               {target: "/", header: []string{"Cookie", cookie, "Origin", "null"}, want: http.StatusForbidden},
		"a request of another site": {
			target: "/live/", header: []string{"Cookie", cookie, "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "cors"}, want: http.StatusForbidden,
		},
		"a request of another port": {
			target: "/", header: []string{"Cookie", cookie, "Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "no-cors"}, want: http.StatusForbidden,
		},
		"a link of another site": {
			target: "/?token=" + token, header: []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate"}, want: http.StatusSeeOther,
		},
		"a write": {method: http.MethodPost, target: "/", header: []string{"Cookie", cookie}, want: http.StatusMethodNotAllowed},
	} {
		t.Run(name, func(t *testing.T) {
			method := c.method
			if method == "" {
				method = http.MethodGet
			}
			w := sendRequest(t, method, c.target, c.header...)
			if w.Code != c.want {
				t.Errorf("got %d %s, want %d", w.Code, w.Body, c.want)
			}
			if strings.Contains(w.Body.String(), "page") != (c.want == http.StatusOK) {
				t.Errorf("body of a refused request = %q", w.Body)
			}
			if got := w.Header().Get("Content-Security-Policy"); got != policy || strings.Contains(got, "unsafe") {
				t.Errorf("Content-Security-Policy = %q", got)
			}
		})
	}
}

func TestTheTokenLeavesTheAddress(t *testing.T) {
	w := sendRequest(t, http.MethodGet, "//run?id=fleet%2Fa&token="+token)
	if got := w.Header().Get("Location"); got != "/run?id=fleet%2Fa" {
		t.Errorf("redirected to %q", got)
	}
	c := w.Result().Cookies()
	if len(c) != 1 || !c[0].HttpOnly || c[0].SameSite != http.SameSiteStrictMode {
		t.Errorf("got cookies %v", c)
	}
}
