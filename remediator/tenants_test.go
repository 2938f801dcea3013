package remediator_test

import (
	"testing"

	"pgregory.net/rapid"

	"scute.dev/remediator"
)

// TestOneNamespaceIsNotBelievedAlone: whatever one other namespace reports of its machines, no more of them are
// unhealthy, and no more are healthy, than all the rest say. What a policy in dry run sees is for its own namespace
// alone.
func TestOneNamespaceIsNotBelievedAlone(t *testing.T) {
	const domain = "a"
	own := remediator.Party{Namespace: "own"}
	weigh := func(selected, marked remediator.Counts, trust bool) (healthy, unhealthy int) {
		m, u := remediator.Weigh(selected, marked).For("own", trust)
		return m[domain] - u[domain], u[domain]
	}
	rapid.Check(t, func(t *rapid.T) {
		selected, marked := remediator.Counts{}, remediator.Counts{}
		say := func(p remediator.Party) {
			n := rapid.IntRange(0, 20).Draw(t, "machines of "+p.Namespace)
			selected.Add(p, domain, n)
			marked.Add(p, domain, rapid.IntRange(0, n).Draw(t, "unhealthy of "+p.Namespace))
		}
		say(own)
		for _, name := range []string{"b", "c", "d"}[:rapid.IntRange(0, 3).Draw(t, "others")] {
			say(remediator.Party{Namespace: name})
		}
		allHealthy, allUnhealthy := weigh(selected, marked, true)
		leastHealthy, leastUnhealthy := weigh(selected, marked, false)
		if got := marked[own][domain]; leastUnhealthy < got {
			t.Fatalf("%d unhealthy, and %d in its own namespace are", leastUnhealthy, got)
		}
		liar := remediator.Party{Namespace: "liar", DryRun: rapid.Bool().Draw(t, "in dry run")}
		say(liar)
		healthy, unhealthy := weigh(selected, marked, false)
		if healthy < leastHealthy || healthy > allHealthy || unhealthy < leastUnhealthy || unhealthy > allUnhealthy {
			t.Fatalf("%d healthy and %d unhealthy; without the liar %d to %d and %d to %d", healthy, unhealthy, leastHealthy, allHealthy, leastUnhealthy, allUnhealthy)
		}
		rehearsed := remediator.Party{Namespace: "own", DryRun: true}
		selected.Add(rehearsed, domain, 5)
		marked.Add(rehearsed, domain, 2)
		if h, u := weigh(selected, marked, false); h != healthy+3 || u != unhealthy+2 {
			t.Fatalf("%d healthy and %d unhealthy with its own in dry run, before %d and %d", h, u, healthy, unhealthy)
		}
	})
}
