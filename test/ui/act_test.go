package ui

import (
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

// TestPagesOfClusters opens the pages about real clusters: of a move that waits, of a machine that is held and of the fleet. Who may only
// look is refused what they offer, by the API server; it is done for who may change it.
func TestPagesOfClusters(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	s := newScene(ctx, t)
	run := s.phase(ctx, v1alpha1.RunPaused)
	away := &v1alpha1.Move{}
	must(t, s.client.Get(ctx, client.ObjectKey{Namespace: sceneNamespace, Name: "away"}, away))
	held := s.remediation(ctx, "is held", func(r *v1alpha1.SurgeRemediation) bool { return r.Status.RemediationID != "" })
	pages := map[string]string{
		"now": "/", "fleet": "/fleet", "run": "/run?" + id(run.Status.RunID), "move": "/move?" + id(away.Status.MoveID),
		"owner": "/owner?" + id(strings.TrimSuffix(held.Status.RemediationID, "/"+held.Name)),
	}
	b := open(t, s.serve(s.blue.Side.KubeconfigPath()))
	for _, page := range pages {
		for _, scheme := range []string{"light", "dark"} {
			b.colors(scheme)
			b.visit(page)
			b.accessible(page + " " + scheme)
		}
		b.quiet()
	}
	t.Run("who may only look is refused", func(t *testing.T) { s.refused(ctx, t, pages) })
	t.Run("what is offered is done", func(t *testing.T) { s.done(ctx, t, pages) })
	t.Run("what was created again is left alone", func(t *testing.T) { s.createdAgain(ctx, t) })
}

func id(of string) string { return url.Values{"id": {of}}.Encode() }

// choose follows a link of what is offered.
func (b *browser) choose(word string) {
	b.t.Helper()
	var at string
	for _, link := range eval[[][]string](b, `[...document.querySelectorAll("a.act")].map(a => [a.textContent, a.href])`) {
		if strings.HasPrefix(link[0], word) {
			at = link[1]
		}
	}
	if at == "" {
		b.t.Fatalf("%s is not offered: %s", word, eval[string](b, `document.body.innerText`))
	}
	b.visit(at)
	b.accessible(word)
}

// confirm fills the form in and sends it, and returns what the next page says.
func (b *browser) confirm(fields ...string) string {
	b.t.Helper()
	for i := 0; i+1 < len(fields); i += 2 {
		b.do(chromedp.SendKeys(chromedp.CSS(fmt.Sprintf(`form.act [name=%s]`, fields[i])), fields[i+1]))
	}
	b.click("form.act button", "main [role=status], main [role=alert]")
	b.accessible("the answer")
	return eval[string](b, `document.querySelector("main").innerText`)
}

// says fails the test if a page does not say all of it.
func says(t *testing.T, page string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(page, part) {
			t.Errorf("it does not say %q:\n%s", part, page)
		}
	}
}

// refused: the API server says no, in its words, and nothing has changed.
func (s *scene) refused(ctx context.Context, t *testing.T, pages map[string]string) {
	b := open(t, s.serve(s.viewer(ctx)))
	for _, c := range [][]string{
		{"run", "Pause", "workflowruns.scute.dev"},
		{"move", "Abort", "moves.scute.dev"},
		{"owner", "Hold", "surgeremediations.scute.dev"},
		{"owner", "Pause policy", "repairpolicies.scute.dev"},
	} {
		b.visit(pages[c[0]])
		b.choose(c[1])
		b.quiet()
		said := b.confirm("reason", "I am curious")
		says(t, said, "Not done", c[2], `is forbidden: User "system:serviceaccount:fleet:looks" cannot patch resource`)
		b.only("403")
	}
	m := &v1alpha1.Move{}
	must(t, s.client.Get(ctx, client.ObjectKey{Namespace: sceneNamespace, Name: "away"}, m))
	if m.Spec.Abort || m.Status.Phase != mover.PhaseAwaitingAcks {
		t.Errorf("the move is %s", m.Status.Phase)
	}
	b.visit("/facts?text=curious")
	says(t, eval[string](b, `document.querySelector("main").innerText`), "No fact matches.")
}

// only is quiet but for the status of the page itself, which is an error of the browser too.
func (b *browser) only(status string) {
	b.t.Helper()
	b.mu.Lock()
	b.errors = slices.DeleteFunc(b.errors, func(said string) bool { return strings.Contains(said, "status of "+status) })
	b.mu.Unlock()
	b.quiet()
}
