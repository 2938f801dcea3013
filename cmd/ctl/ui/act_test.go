package ui

import (
	"context"
	"encoding/json"
	"fmt"
	"html"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/ui/page"
	"scute.dev/ui/uitest"
)

// api simulates a Kubernetes API server with one SurgeRemediation and one Pause, as far as actions need it. The tests
// of the real pages use a real one.
type api struct {
	t      *testing.T
	object v1alpha1.SurgeRemediation
	pause  v1alpha1.Pause
	// deletes counts the deletions of the Pause.
	deletes int
	// patches counts the writes.
	patches int
	// refuses rejects patches as RBAC does, and conflicts is the number of patches to reject with a conflict.
	refuses   bool
	conflicts int
	// written is called after a patch was stored and before it is answered, if it is set.
	written func()
}

func (a *api) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	version := metav1.GroupVersionForDiscovery{GroupVersion: "scute.dev/v1alpha1", Version: "v1alpha1"}
	switch {
	case r.URL.Path == "/api":
		a.send(w, metav1.APIVersions{TypeMeta: metav1.TypeMeta{Kind: "APIVersions", APIVersion: "v1"}})
	case r.URL.Path == "/apis":
		one := metav1.APIGroup{Name: "scute.dev", Versions: []metav1.GroupVersionForDiscovery{version}, PreferredVersion: version}
		a.send(w, metav1.APIGroupList{TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"}, Groups: []metav1.APIGroup{one}})
	case r.URL.Path == "/apis/scute.dev/v1alpha1":
		a.send(w, metav1.APIResourceList{
			TypeMeta: metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"}, GroupVersion: version.GroupVersion,
			APIResources: []metav1.APIResource{
				{Name: "surgeremediations", SingularName: "surgeremediation", Namespaced: true, Kind: "SurgeRemediation", Verbs: metav1.Verbs{"get", "patch"}},
				{Name: "pauses", SingularName: "pause", Namespaced: true, Kind: "Pause", Verbs: metav1.Verbs{"get", "delete"}},
			},
		})
	case strings.HasSuffix(r.URL.Path, "/namespaces/fleet/pauses/late") && r.Method == http.MethodDelete:
		a.remove(w, r)
	case strings.HasSuffix(r.URL.Path, "/namespaces/fleet/pauses/late"):
		a.send(w, a.pause)
	case !strings.HasSuffix(r.URL.Path, "/namespaces/fleet/surgeremediations/cp-1"):
		http.NotFound(w, r)
	case r.Method == http.MethodPatch:
		a.patch(w, r)
	default:
		a.send(w, a.object)
	}
}

func (a *api) patch(w http.ResponseWriter, r *http.Request) {
	if a.refuses {
		a.status(w, http.StatusForbidden, metav1.StatusReasonForbidden, `surgeremediations.scute.dev "cp-1" is forbidden: User "jane" cannot patch resource`)
		return
	}
	if a.conflicts > 0 {
		a.conflicts--
		a.status(w, http.StatusConflict, metav1.StatusReasonConflict, "the object has been modified")
		return
	}
	patch, err := io.ReadAll(r.Body)
	if err != nil {
		a.t.Error(err)
	}
	before, err := json.Marshal(a.object)
	if err != nil {
		a.t.Error(err)
	}
	after, err := jsonpatch.MergePatch(before, patch)
	if err != nil {
		a.t.Error(err)
	}
	var changed v1alpha1.SurgeRemediation
	if err := json.Unmarshal(after, &changed); err != nil {
		a.t.Error(err)
	}
	if changed.ResourceVersion != a.object.ResourceVersion || !strings.Contains(string(patch), "resourceVersion") {
		a.t.Errorf("the patch does not hold what was seen: %s", patch)
	}
	changed.Generation++
	a.object, a.patches = changed, a.patches+1
	if a.written != nil {
		a.written()
	}
	a.send(w, a.object)
}

// remove marks the Pause as deleted, because it has a finalizer.
func (a *api) remove(w http.ResponseWriter, r *http.Request) {
	var options metav1.DeleteOptions
	if err := json.NewDecoder(r.Body).Decode(&options); err != nil || options.Preconditions == nil || *options.Preconditions.UID != a.pause.UID {
		a.t.Errorf("the deletion does not hold what was seen: %v %+v", err, options)
	}
	if a.refuses {
		a.status(w, http.StatusForbidden, metav1.StatusReasonForbidden, `pauses.scute.dev "late" is forbidden: User "jane" cannot delete resource`)
		return
	}
	now := metav1.Now()
	a.pause.DeletionTimestamp, a.deletes = &now, a.deletes+1
	a.pause.Generation++
	a.send(w, a.pause)
}

func (a *api) status(w http.ResponseWriter, code int, reason metav1.StatusReason, message string) {
	w.WriteHeader(code)
	a.send(w, metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), //nolint:gosec // a status
		Reason: reason, Message: message, Details: &metav1.StatusDetails{Group: "scute.dev", Kind: "surgeremediations", Name: "cp-1"},
	})
}

func (a *api) send(w http.ResponseWriter, o any) {
	if err := json.NewEncoder(w).Encode(o); err != nil {
		a.t.Error(err)
	}
}

// newAPI returns an API server and the pages of a user of it.
func newAPI(t *testing.T) (*api, http.Handler) {
	t.Helper()
	a := &api{t: t, object: v1alpha1.SurgeRemediation{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scute.dev/v1alpha1", Kind: "SurgeRemediation"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "cp-1", UID: "8c1f", ResourceVersion: "7", Generation: 1},
		Status:     v1alpha1.SurgeRemediationStatus{Phase: v1alpha1.RemediationSurging, RemediationID: "fleet/cp/0a1b/cp-1", Message: uitest.Markup},
	}}
	a.pause = v1alpha1.Pause{
		TypeMeta:   metav1.TypeMeta{APIVersion: "scute.dev/v1alpha1", Kind: "Pause"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "late", UID: "77aa", ResourceVersion: "9", Generation: 1, Finalizers: []string{"scute.dev/pause"}},
		Spec:       v1alpha1.PauseSpec{Clusters: []string{"prod"}},
		Status:     v1alpha1.PauseStatus{Phase: v1alpha1.PauseTimedOut, PauseID: "fleet/late/77aa", Message: uitest.Markup},
	}
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	config := fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"c","clusters":[{"name":"c","cluster":{"server":%q}}],"contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"users":[{"name":"u","user":{}}]}`, server.URL)
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	flags := connect.New()
	flags.Kubeconfig = file
	k := &kit.Kit{Env: &cli.Env{Name: "scutectl", Now: time.Now, Size: func(any) (int, int, bool) { return 0, 0, false }}, Flags: flags}
	return a, handlerFor(t, k, newDesk(k))
}

// queryOf returns the parameters of the address that requests an action.
func queryOf(a kit.Action) url.Values {
	return url.Values{"do": {a.Do}, "kind": {a.Kind}, "namespace": {a.Namespace}, "name": {a.Name}, "id": {a.ID}}
}

// handlerFor returns the handler of one run of scutectl ui.
func handlerFor(t *testing.T, k *kit.Kit, desk *desk) http.Handler {
	t.Helper()
	f := uitest.Feed(t)
	site, err := page.New(f, k, "logs")
	if err != nil {
		t.Fatal(err)
	}
	h, err := newHandler(site, f, desk, token, host, "localhost:4711")
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// get requests an address as the user's browser does.
func get(t *testing.T, h http.Handler, method, target string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://"+host+target, http.NoBody)
	r.Header.Set("Cookie", "scute-ui-4711="+token)
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// form sends a form as a browser does from a page of the server.
func form(t *testing.T, h http.Handler, values url.Values, header ...string) *httptest.ResponseRecorder {
	t.Helper()
	return formOf(t.Context(), h, values, header...)
}

// formOf sends a form as a browser that disconnects when ctx ends.
func formOf(ctx context.Context, h http.Handler, values url.Values, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequestWithContext(ctx, http.MethodPost, "http://"+host+"/act", strings.NewReader(values.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Cookie", "scute-ui-4711="+token)
	r.Header.Set("Origin", "http://"+host)
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	for i := 0; i+1 < len(header); i += 2 {
		if header[i] == "Host" {
			r.Host = header[i+1]
		} else {
			r.Header.Set(header[i], header[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// confirmationForm requests the confirmation page of an action, and returns the values of its form.
func confirmationForm(t *testing.T, h http.Handler, do string) url.Values {
	t.Helper()
	return confirmationFormOf(t, h, kit.Action{Do: do, Kind: "remediation", Namespace: "fleet", Name: "cp-1", ID: "fleet/cp/0a1b/cp-1"}, "8c1f")
}

func confirmationFormOf(t *testing.T, h http.Handler, ask kit.Action, uid string) url.Values {
	t.Helper()
	w := get(t, h, http.MethodGet, "/act?"+queryOf(ask).Encode())
	body := w.Body.String()
	if w.Code != http.StatusOK || !strings.Contains(body, uid) || !strings.Contains(body, "What happens:") || strings.Contains(body, "<hostile") {
		t.Fatalf("got %d %s", w.Code, body)
	}
	values := make(url.Values)
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]*)" value="([^"]*)">`).FindAllStringSubmatch(body, -1) {
		values.Set(field[1], html.UnescapeString(field[2]))
	}
	return values
}

func TestActs(t *testing.T) {
	a, h := newAPI(t)
	values := confirmationForm(t, h, "hold")
	values.Set("reason", uitest.Markup)
	values.Set("for", "2h")
	a.conflicts = 2 // its status is written repeatedly
	w := form(t, h, values)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "fleet/cp-1: held for 2h") || strings.Contains(w.Body.String(), "<hostile") {
		t.Fatalf("got %d %s", w.Code, w.Body)
	}
	if a.object.Spec.Hold == nil || a.object.Spec.Hold.Reason != uitest.Markup || a.object.Spec.Hold.Until == nil {
		t.Errorf("hold = %+v", a.object.Spec.Hold)
	}
	if w := form(t, h, values); w.Code != http.StatusConflict || a.patches != 1 || !strings.Contains(w.Body.String(), "was already sent") {
		t.Errorf("the same form was accepted again: %d %s", w.Code, w.Body)
	}
	if w := form(t, h, confirmationForm(t, h, "release")); w.Code != http.StatusOK || a.object.Spec.Hold != nil {
		t.Errorf("release: got %d %s", w.Code, w.Body)
	}
	if w := form(t, h, confirmationForm(t, h, "abort")); w.Code != http.StatusOK || !a.object.Spec.Abort {
		t.Errorf("abort: got %d %s", w.Code, w.Body)
	}
}

// TestAFormIsSentAgain checks that a form is refused that was sent before, although its resource is as
// it was then: pausing a run in the log does not change the WorkflowRun.
func TestAFormIsSentAgain(t *testing.T) {
	a, h := newAPI(t)
	before, values := a.object, confirmationForm(t, h, "hold")
	form(t, h, values)
	a.object = before
	if w := form(t, h, values); w.Code != http.StatusConflict || a.patches != 1 || !strings.Contains(w.Body.String(), "was already sent") {
		t.Errorf("got %d, %d patches, %s", w.Code, a.patches, w.Body)
	}
}

// TestActOfABrowserThatGoesAway checks that a form is processed, and only once, if a second click aborts the request of
// the first.
func TestActOfABrowserThatGoesAway(t *testing.T) {
	a, h := newAPI(t)
	values := confirmationForm(t, h, "hold")
	values.Set("reason", "a second click")
	ctx, leave := context.WithCancel(t.Context())
	a.written = leave
	formOf(ctx, h, values)
	if w := form(t, h, values); w.Code != http.StatusConflict || a.patches != 1 || !strings.Contains(w.Body.String(), "was already sent") {
		t.Errorf("got %d patches; the second click returned %d %s", a.patches, w.Code, w.Body)
	}
}

// TestActsAreRefused checks that a form that was not confirmed, or does not match the current object, changes nothing.
func TestActsAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		header []string
		change func(*api, url.Values)
		want   int
		says   string
	}{
		"RBAC":                {change: func(a *api, _ url.Values) { a.refuses = true }, want: http.StatusForbidden, says: `User "jane" cannot patch resource`},
		"another site":        {header: []string{"Origin", "https://evil.example"}, want: http.StatusForbidden},
		"another port":        {header: []string{"Origin", "http://127.0.0.1:80"}, want: http.StatusForbidden},
		"no origin":           {header: []string{"Origin", ""}, want: http.StatusForbidden},
		"an opaque origin":    {header: []string{"Origin", "null"}, want: http.StatusForbidden},
		"the browser says so": {header: []string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate"}, want: http.StatusForbidden},
		"no cookie":           {header: []string{"Cookie", ""}, want: http.StatusUnauthorized},
		"another UID":         {change: func(_ *api, v url.Values) { v.Set("uid", "other") }, want: http.StatusConflict, says: "was deleted and created again"},
		"another name":        {change: func(_ *api, v url.Values) { v.Set("name", "cp-2") }, want: http.StatusBadGateway, says: "there is no such remediation"},
		"another namespace": {
			change: func(_ *api, v url.Values) { v.Set("namespace", "other") }, want: http.StatusBadGateway, says: "there is no such remediation",
		},
		"another ID": {
			change: func(_ *api, v url.Values) { v.Set("id", "fleet/cp/ffff/cp-1") }, want: http.StatusConflict, says: "in the log",
		},
		"another name of the server (DNS rebinding)": {
			header: []string{"Host", "evil.example:4711", "Origin", "http://evil.example:4711"}, want: http.StatusForbidden,
		},
		"a form of localhost": {header: []string{"Origin", "http://localhost:4711"}, want: http.StatusForbidden},
		"a form in parts":     {header: []string{"Content-Type", "multipart/form-data; boundary=x"}, want: http.StatusBadRequest},
		"a form of text":      {header: []string{"Content-Type", "text/plain"}, want: http.StatusBadRequest},
		"being deleted": {
			change: func(a *api, _ url.Values) { a.object.DeletionTimestamp = &metav1.Time{Time: time.Now()} }, want: http.StatusConflict, says: "is being deleted",
		},
		"no action":              {change: func(_ *api, v url.Values) { v.Set("do", "delete") }, want: http.StatusBadRequest},
		"no form":                {change: func(_ *api, v url.Values) { v.Del("form") }, want: http.StatusBadRequest, says: "incomplete"},
		"no generation":          {change: func(_ *api, v url.Values) { v.Set("generation", "x") }, want: http.StatusBadRequest},
		"how long":               {change: func(_ *api, v url.Values) { v.Set("for", "soon") }, want: http.StatusBadRequest, says: "for example 2h"},
		"too much of a reason":   {change: func(_ *api, v url.Values) { v.Set("reason", strings.Repeat("x", 513)) }, want: http.StatusBadRequest, says: "512 or fewer"},
		"too much of everything": {change: func(_ *api, v url.Values) { v.Set("reason", strings.Repeat("x", formBytes)) }, want: http.StatusBadRequest},
		"created again":          {change: func(a *api, _ url.Values) { a.object.UID = "9d2e" }, want: http.StatusConflict, says: "was deleted and created again meanwhile"},
		"changed meanwhile":      {change: func(a *api, _ url.Values) { a.object.Generation++ }, want: http.StatusConflict, says: "has changed meanwhile"},
		"another in the log":     {change: func(a *api, _ url.Values) { a.object.Status.RemediationID = "fleet/cp/ffff/cp-1" }, want: http.StatusConflict, says: "in the log"},
		"it is over": {change: func(a *api, _ url.Values) {
			a.object.Status.Phase, a.object.Status.FinishedAt = v1alpha1.RemediationSucceeded, &metav1.Time{Time: time.Now()}
		}, want: http.StatusConflict, says: "there is nothing to hold"},
	} {
		t.Run(name, func(t *testing.T) {
			a, h := newAPI(t)
			values := confirmationForm(t, h, "hold")
			if c.change != nil {
				c.change(a, values)
			}
			w := form(t, h, values, c.header...)
			if w.Code != c.want || !strings.Contains(html.UnescapeString(w.Body.String()), c.says) {
				t.Errorf("got %d, want %d and %q:\n%s", w.Code, c.want, c.says, w.Body)
			}
			if a.patches != 0 {
				t.Error("the object was changed")
			}
		})
	}
}

// TestAStalePageIsRefused checks that an action is refused if the page referred to an earlier object of the same name.
func TestAStalePageIsRefused(t *testing.T) {
	_, h := newAPI(t)
	q := queryOf(kit.Action{Do: "hold", Kind: "remediation", Namespace: "fleet", Name: "cp-1", ID: "fleet/cp/before/cp-1"})
	if w := get(t, h, http.MethodGet, "/act?"+q.Encode()); w.Code != http.StatusConflict || strings.Contains(w.Body.String(), "<form") {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestAnAddressDoesNothing checks that the values of a form in an address cause no change.
func TestAnAddressDoesNothing(t *testing.T) {
	a, h := newAPI(t)
	values := confirmationForm(t, h, "abort")
	for _, method := range []string{http.MethodGet, http.MethodHead, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions} {
		w := get(t, h, method, "/act?"+values.Encode())
		if w.Code == http.StatusOK && method != http.MethodGet && method != http.MethodHead || strings.Contains(w.Body.String(), "<h1>Done") {
			t.Errorf("%s: got %d %s", method, w.Code, w.Body)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://"+host+"/act?"+values.Encode(), http.NoBody)
	r.Header.Set("Cookie", "scute-ui-4711="+token)
	r.Header.Set("Origin", "http://"+host)
	w := httptest.NewRecorder()
	if h.ServeHTTP(w, r); w.Code != http.StatusBadRequest {
		t.Errorf("form in the address: got %d %s", w.Code, w.Body)
	}
	if a.patches != 0 {
		t.Error("the object was changed")
	}
}

// TestReadOnly checks that pages without a desk have no actions, even for a form from an earlier session.
func TestReadOnly(t *testing.T) {
	a, h := newAPI(t)
	values := confirmationForm(t, h, "hold")
	k := &kit.Kit{Env: &cli.Env{Name: "scutectl", Now: time.Now}, Flags: connect.New()}
	h = handlerFor(t, k, nil)
	if w := get(t, h, http.MethodGet, "/act?"+values.Encode()); w.Code != http.StatusNotFound {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	if w := form(t, h, values); w.Code != http.StatusMethodNotAllowed || a.patches != 0 {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// TestAnAnswerShowsWhatIsHostileAsText checks that markup and control characters from an address or a resource are
// escaped.
func TestAnAnswerShowsWhatIsHostileAsText(t *testing.T) {
	a, h := newAPI(t)
	a.object.Status.Message = uitest.Markup
	ask := kit.Action{Do: uitest.Markup, Kind: uitest.Markup, Namespace: uitest.Markup, Name: uitest.Markup, ID: uitest.Markup}
	for _, q := range []url.Values{queryOf(ask), {"do": {"\u202e"}}, {"do": {"\xff"}, "kind": {"\x00"}}, confirmationForm(t, h, "hold")} {
		w := get(t, h, http.MethodGet, "/act?"+q.Encode())
		if body := w.Body.String(); strings.Contains(body, "<hostile") || strings.ContainsAny(body, "\x00\u202e\u009b") {
			t.Errorf("%v: got %d %q", q, w.Code, body)
		}
		if w.Header().Get("Content-Security-Policy") != policy || w.Header().Get("Cache-Control") != "no-store" {
			t.Errorf("%v: got headers %v", q, w.Header())
		}
	}
}
