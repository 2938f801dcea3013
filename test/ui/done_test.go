package ui

import (
	"context"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/mover"
)

// done checks that the actions of the pages change the cluster, and that the log has the user and the reason.
func (s *scene) done(ctx context.Context, t *testing.T, pages map[string]string) {
	b := open(t, s.serve(s.blue.Side.KubeconfigPath()))
	s.policyPaused(ctx, t, b, pages["owner"])

	by := b.act(pages["run"], "Pause", "paused by", "the storage is serviced")
	b.recorded("the storage is serviced", by)
	b.visit(pages["run"])
	says(t, eval[string](b, `document.querySelector("main").innerText`), "the storage is serviced")
	b.act(pages["run"], "Resume", "resumed by", "the storage is back")
	b.recorded("the storage is back", by)
	if w := s.phase(ctx, v1alpha1.RunPaused); w.Spec.Suspend {
		t.Error("the permission check changed the spec")
	}

	by = b.act(pages["move"], "Abort", "abort recorded by", "the wrong target")
	b.recorded("the wrong target", by)
	m, err := s.blue.Wait(ctx, sceneNamespace, "away", func(m *v1alpha1.Move) bool { return m.Status.FinishedAt != nil })
	must(t, err)
	if m.Status.Phase != mover.PhaseRolledBack || m.Spec.Abort {
		t.Errorf("phase of the move = %s: %s; want RolledBack without an abort in the spec", m.Status.Phase, m.Status.Message)
	}
	must(t, s.blue.Side.WaitAvailable(ctx, sceneNamespace, "moves"))
	b.until(`document.querySelector("main").innerText.includes("` + string(mover.PhaseRolledBack) + `")`)
	b.quiet()
}

// policyPaused removes a pause request that a form could not submit unchanged, and keeps the one that was added.
func (s *scene) policyPaused(ctx context.Context, t *testing.T, b *browser, owner string) {
	t.Helper()
	const odd = "two\nlines\u202e"
	p := &v1alpha1.RepairPolicy{}
	key := client.ObjectKey{Namespace: sceneNamespace, Name: "careful"}
	must(t, s.client.Get(ctx, key, p))
	before := p.DeepCopy()
	p.Spec.PauseRequests = []string{odd}
	must(t, s.client.Patch(ctx, p, client.MergeFrom(before)))

	b.act(owner, "Pause policy", "starts no remediation until", "the network is serviced")
	b.act(owner, "Resume policy", "1 more keep it", "") // the first one is selected
	must(t, s.client.Get(ctx, key, p))
	if !slices.Equal(p.Spec.PauseRequests, []string{"the network is serviced"}) {
		t.Errorf("pause requests = %q, want only the one that was added", p.Spec.PauseRequests)
	}
}

// act carries out an action of a page, and returns the user in the answer.
func (b *browser) act(page, word, answer, reason string) (by string) {
	b.t.Helper()
	b.visit(page)
	b.choose(word)
	var fields []string
	if reason != "" {
		fields = []string{"reason", reason}
	}
	said := b.confirm(fields...)
	says(b.t, said, "Done", answer)
	b.quiet()
	if found := regexp.MustCompile(` by (\S+)`).FindStringSubmatch(said); found != nil {
		by = found[1]
	}
	return by
}

// recorded waits until the log has a reason and its user in one event, and returns to the page.
func (b *browser) recorded(reason, by string) {
	b.t.Helper()
	back := eval[string](b, `document.querySelector("main a").getAttribute("href")`)
	b.visit("/facts?" + url.Values{"text": {reason}}.Encode())
	b.until(fmt.Sprintf(`[...document.querySelectorAll("table.facts tbody tr")].some(r => r.innerText.includes(%q) && r.querySelector(".actor").innerText === %q)`, reason, by+" (unverified)"))
	b.visit(back)
}

// createdAgain checks that an action that was confirmed for an object is not carried out for another one with the same
// name.
func (s *scene) createdAgain(ctx context.Context, t *testing.T) {
	policy := func() *v1alpha1.RepairPolicy {
		return &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: metav1.NamespaceDefault, Name: "spare"}} // without machines
	}
	must(t, s.client.Create(ctx, policy()))
	b := open(t, s.serve(s.blue.Side.KubeconfigPath()))
	ask := url.Values{"do": {"pause"}, "kind": {"policy"}, "namespace": {metav1.NamespaceDefault}, "name": {"spare"}}
	b.visit("/act?" + ask.Encode())
	must(t, s.client.Delete(ctx, policy()))
	must(t, s.client.Create(ctx, policy()))
	says(t, b.confirm("reason", "it is serviced"), "Failed", "was deleted and created again meanwhile")
	b.only("409")
	p := policy()
	must(t, s.client.Get(ctx, client.ObjectKeyFromObject(p), p))
	if p.Generation != 1 || len(p.Spec.PauseRequests) > 0 {
		t.Errorf("the other policy was changed: %q", p.Spec.PauseRequests)
	}
}
