package remediator_test

import (
	"testing"

	"pgregory.net/rapid"

	"scute.dev/remediator"
)

// TestOneNamespaceDoesNotCountAlone checks that the counts of one other namespace change the counts of healthy and
// unhealthy machines only within the bounds set by all other namespaces, and that a policy in dry run counts only for
// its own namespace.
func TestOneNamespaceDoesNotCountAlone(t *testing.T) {
	const domain = "a"
	own := remediator.PolicyGroup{Namespace: "own"}
	count := func(selected, marked remediator.NamespaceCounts, namespace string) (healthy, unhealthy int) {
		m, u := remediator.MassEvidence(selected, marked)(namespace)
		return m[domain] - u[domain], u[domain]
	}
	rapid.Check(t, func(t *rapid.T) {
		selected, marked := remediator.NamespaceCounts{}, remediator.NamespaceCounts{}
		say := func(p remediator.PolicyGroup) {
			n := rapid.IntRange(0, 20).Draw(t, "machines of "+p.Namespace)
			selected.Add(p, domain, n)
			marked.Add(p, domain, rapid.IntRange(0, n).Draw(t, "unhealthy of "+p.Namespace))
		}
		say(own)
		for _, name := range []string{"b", "c", "d"}[:rapid.IntRange(0, 3).Draw(t, "others")] {
			say(remediator.PolicyGroup{Namespace: name})
		}
		allHealthy, allUnhealthy := count(selected, marked, "")
		leastHealthy, leastUnhealthy := count(selected, marked, "own")
		if got := marked[own][domain]; leastUnhealthy < got {
			t.Fatalf("got %d unhealthy, want at least the %d of its own namespace", leastUnhealthy, got)
		}
		liar := remediator.PolicyGroup{Namespace: "liar", DryRun: rapid.Bool().Draw(t, "in dry run")}
		say(liar)
		healthy, unhealthy := count(selected, marked, "own")
		if healthy < leastHealthy || healthy > allHealthy || unhealthy < leastUnhealthy || unhealthy > allUnhealthy {
			t.Fatalf("got %d healthy and %d unhealthy, want %d to %d and %d to %d as without the liar", healthy, unhealthy, leastHealthy, allHealthy, leastUnhealthy, allUnhealthy)
		}
		rehearsed := remediator.PolicyGroup{Namespace: "own", DryRun: true}
		selected.Add(rehearsed, domain, 5)
		marked.Add(rehearsed, domain, 2)
		if h, u := count(selected, marked, "own"); h != healthy+3 || u != unhealthy+2 {
			t.Fatalf("got %d healthy and %d unhealthy with its own policy in dry run, want 3 and 2 more than %d and %d", h, u, healthy, unhealthy)
		}
	})
}
