package ui

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// shared is a daemon that serves its pages, with a run in each of two namespaces.
type shared struct {
	t       *testing.T
	on      *scuted.Installation
	client  client.Client // of scute's own kinds
	admin   client.Client
	address string
	daemon  *scuted.Daemon
}

const (
	ours     = "team-violet"
	theirs   = "team-amber"
	audience = "scute-ui"
)

func newShared(ctx context.Context, t *testing.T) *shared {
	t.Helper()
	programs, err := scuted.Build(ctx, os.Stderr)
	must(t, err)
	bed := testbed.StartForTest(t, testbed.Options{Sides: []string{"blue"}, Bare: true})
	s := &shared{t: t, admin: bed.Side("blue").Client()}
	s.on, err = scuted.Install(ctx, bed.Side("blue"), programs, "ui.enabled=true", "ui.audiences[0]="+audience)
	must(t, err)
	s.client, err = s.on.Client()
	must(t, err)
	at := ports.AddressForTest(t)
	s.address = "http://" + at
	s.daemon = harness.Daemon(t, s.on, scuted.DaemonOptions{
		Health: ports.AddressForTest(t), Args: []string{"--ui-address", at, "--ui-audiences", audience},
	})
	must(t, s.daemon.WaitReady(ctx))
	for _, namespace := range []string{ours, theirs} {
		must(t, s.admin.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
		s.run(ctx, namespace, namespace+"-night")
	}
	return s
}

// run begins a run that waits for an approval.
func (s *shared) run(ctx context.Context, namespace, name string) {
	s.t.Helper()
	w, err := scuted.NewWorkflowRun(namespace, name, "default", `
tasks:
- {name: approve, kind: Approve, with: {message: "is it night?"}}
`)
	must(s.t, err)
	must(s.t, s.client.Create(ctx, w))
	_, err = s.on.WaitWorkflowRun(ctx, namespace, name, func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunPaused })
	must(s.t, err)
}

// user makes a ServiceAccount that may look in a namespace, and gives a token for an audience; "" is the API server.
func (s *shared) user(ctx context.Context, name, in, audience string) string {
	s.t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}}
	must(s.t, client.IgnoreAlreadyExists(s.admin.Create(ctx, account)))
	must(s.t, client.IgnoreAlreadyExists(s.admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: in, Name: name}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "scute-viewer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: in, Name: name}},
	})))
	harness.Allowed(ctx, s.t, s.admin, "system:serviceaccount:"+in+":"+name, authorizationv1.ResourceAttributes{Namespace: in, Verb: "list", Group: "scute.dev", Resource: "workflowruns"})
	request := &authenticationv1.TokenRequest{}
	if audience != "" {
		request.Spec.Audiences = []string{audience}
	}
	must(s.t, s.admin.SubResource("token").Create(ctx, account, request))
	return request.Status.Token
}

// signIn fills the form in, and returns what the next page says.
func (b *browser) signIn(token string) string {
	b.t.Helper()
	b.do(chromedp.WaitReady(chromedp.CSS("form.signin")), chromedp.SetValue(chromedp.CSS("form.signin [name=token]"), token),
		chromedp.Evaluate[chromedp.Void](`window.before = true`), chromedp.Click(chromedp.CSS("form.signin button")))
	b.until(`window.before !== true && document.readyState === "complete"`)
	return eval[string](b, `document.body.innerText`)
}

// TestPagesOfTheDaemon: a user signs in with a token that is for the pages, sees what RBAC permits and nothing else, and nothing any more when
// it does not.
func TestPagesOfTheDaemon(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s := newShared(ctx, t)
	token := s.user(ctx, "ada", ours, audience)
	mine, err := s.on.WaitWorkflowRun(ctx, ours, ours+"-night", func(w *v1alpha1.WorkflowRun) bool { return w.Status.RunID != "" })
	must(t, err)
	other, err := s.on.WaitWorkflowRun(ctx, theirs, theirs+"-night", func(w *v1alpha1.WorkflowRun) bool { return w.Status.RunID != "" })
	must(t, err)

	run := "/run?" + id(mine.Status.RunID)
	b := open(t, s.address+run)
	for _, scheme := range []string{"light", "dark"} {
		b.colors(scheme)
		b.accessible("the form " + scheme)
	}
	b.quiet()
	for name, wrong := range map[string]string{"made up": "guess", "for the API server": s.user(ctx, "ada", ours, "")} {
		said := b.signIn(wrong)
		says(t, said, "does not accept this token")
		if strings.Contains(said, "-night") {
			t.Errorf("a token that is %s shows %s", name, said)
		}
		b.accessible("the form again")
		b.only("401")
	}
	says(t, b.signIn(token), ours+"-night", "is it night?", "system:serviceaccount:"+ours+":ada")
	if at := eval[string](b, `location.pathname + location.search`); at != run {
		t.Errorf("signing in led to %s, want %s", at, run)
	}
	for _, page := range []string{"/", "/fleet", "/facts", run, "/facts?kind=run&text=night", "/?at=2"} {
		for _, scheme := range []string{"light", "dark"} {
			b.colors(scheme)
			b.visit(page)
			b.accessible(page + " " + scheme)
		}
		if shown := eval[string](b, `document.documentElement.outerHTML`); strings.Contains(shown, theirs) || strings.Contains(shown, token) {
			t.Errorf("%s shows what the user may not see:\n%s", page, shown)
		}
		b.quiet()
	}
	b.visit("/run?" + id(other.Status.RunID))
	says(t, eval[string](b, `document.body.innerText`), "This cannot be shown")
	b.only("404")

	b.visit("/")
	s.run(ctx, ours, ours+"-later")
	s.run(ctx, theirs, theirs+"-later")
	b.until(`document.querySelector("main").innerText.includes("` + ours + `-later")`)
	s.withoutBrowser(ctx, t, token)

	must(t, s.admin.Delete(ctx, &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: "ada"}}))
	b.until(`!document.querySelector("main").innerText.includes("-night")`)
	says(t, eval[string](b, `document.querySelector("main").innerText`), "Nothing waits for a decision", "Up to commit 0")
	must(t, s.admin.Delete(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ours, Name: "ada"}}))
	b.until(`document.querySelector("main").innerText.includes("You are signed out")`)
	b.accessible("the end")
	b.quiet()
	b.visit("/facts")
	says(t, eval[string](b, `document.body.innerText`), "Bearer token")

	s.everything(ctx, t, b)
	text, err := os.ReadFile(s.daemon.Log())
	must(t, err)
	for _, secret := range []string{token, token[:40]} {
		if strings.Contains(string(text), secret) {
			t.Error("the daemon logs a token")
		}
	}
}

// everything is seen by who may list all in all namespaces, until that user signs out.
func (s *shared) everything(ctx context.Context, t *testing.T, b *browser) {
	t.Helper()
	must(t, s.admin.Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "grace"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "scute-viewer"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: theirs, Name: "grace"}},
	}))
	harness.Allowed(ctx, t, s.admin, "system:serviceaccount:"+theirs+":grace", authorizationv1.ResourceAttributes{Verb: "list", Group: "scute.dev", Resource: "workflowruns"})
	says(t, b.signIn(s.user(ctx, "grace", theirs, audience)), ours+"-night", theirs+"-night")
	b.click("form.leave button", "form.signin")
	b.visit("/")
	says(t, eval[string](b, `document.body.innerText`), "Bearer token")
	b.quiet()
}

// withoutBrowser: a proxy may send the token, and nothing is served to who sends none, or asks by another name.
func (s *shared) withoutBrowser(ctx context.Context, t *testing.T, token string) {
	t.Helper()
	for name, c := range map[string]struct {
		path, token, host string
		code              int
		shows             bool
	}{
		"a proxy":              {"/", token, "", http.StatusOK, true},
		"a wrong token":        {"/", "guess", "", http.StatusUnauthorized, false},
		"nobody":               {"/", "", "", http.StatusOK, false}, // the form
		"nobody's stream":      {"/live/", "", "", http.StatusUnauthorized, false},
		"another name":         {"/", token, "evil.example", http.StatusForbidden, false},
		"a token in the URL":   {"/?token=" + token, "", "", http.StatusOK, false},
		"a proof":              {"/proof?commit=1", token, "", http.StatusNotFound, false},
		"something to be done": {fmt.Sprintf("/act?do=resume&kind=run&namespace=%s&name=%s-night", ours, ours), token, "", http.StatusNotFound, false},
	} {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+c.path, http.NoBody)
		must(t, err)
		if request.Host = c.host; c.token != "" {
			request.Header.Set("Authorization", "Bearer "+c.token)
		}
		response, err := http.DefaultClient.Do(request)
		must(t, err)
		body, err := io.ReadAll(response.Body)
		must(t, err)
		must(t, response.Body.Close())
		if response.StatusCode != c.code || strings.Contains(string(body), ours+"-night") != c.shows || strings.Contains(string(body), theirs) {
			t.Errorf("%s: %d\n%s", name, response.StatusCode, body)
		}
	}
}
