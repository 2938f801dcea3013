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

// TestPagesOfClusters opens the pages about real clusters: a move that waits, a machine that is held, and the fleet.
// For a user who may only read, the API server refuses the offered actions. For a user with write permission they are
// carried out.
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

// choose follows the link of an offered action.
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

// confirm fills in the form, submits it, and returns the text of the next page.
func (b *browser) confirm(fields ...string) string {
	b.t.Helper()
	for i := 0; i+1 < len(fields); i += 2 {
		b.do(chromedp.SendKeys(chromedp.CSS(fmt.Sprintf(`form.act [name=%s]`, fields[i])), fields[i+1]))
	}
	b.click("form.act button", "main [role=status], main [role=alert]")
	b.accessible("the answer")
	return eval[string](b, `document.querySelector("main").innerText`)
}

// says checks that a page contains all parts.
func says(t *testing.T, page string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(page, part) {
			t.Errorf("page lacks %q:\n%s", part, page)
		}
	}
}

// refused checks that the page shows the API server's error and that nothing has changed.
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
		says(t, said, "Failed", c[2], `is forbidden: User "system:serviceaccount:fleet:looks" cannot patch resource`)
		b.only("403")
	}
	m := &v1alpha1.Move{}
	must(t, s.client.Get(ctx, client.ObjectKey{Namespace: sceneNamespace, Name: "away"}, m))
	if m.Spec.Abort || m.Status.Phase != mover.PhaseAwaitingAcks {
		t.Errorf("phase of the move = %s, want AwaitingAcks without an abort", m.Status.Phase)
	}
	b.visit("/facts?text=curious")
	says(t, eval[string](b, `document.querySelector("main").innerText`), "No fact matches.")
}

// only checks like quiet, but ignores the HTTP status of the page itself, which the browser reports as an error.
func (b *browser) only(status string) {
	b.t.Helper()
	b.mu.Lock()
	b.errors = slices.DeleteFunc(b.errors, func(said string) bool { return strings.Contains(said, "status of "+status) })
	b.mu.Unlock()
	b.quiet()
}
