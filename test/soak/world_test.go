package soak

import (
	"strings"
	"testing"
	"time"
)

// members parses members of etcd. In "a b! c", b does not answer.
func members(text string) []Member {
	var all []Member
	for _, id := range strings.Fields(text) {
		all = append(all, Member{ID: strings.TrimSuffix(id, "!"), Answers: !strings.HasSuffix(id, "!")})
	}
	return all
}

func TestQuorum(t *testing.T) {
	for name, c := range map[string]struct {
		looks []string // "+" and "-" begin and end a disaster
		lost  bool
	}{
		"all answer":                          {[]string{"a b c"}, false},
		"one of three is silent":              {[]string{"a b c", "a b! c"}, false},
		"two of three are silent":             {[]string{"a b c", "a b! c!"}, true},
		"one of two is silent":                {[]string{"a b c", "a b", "a! b"}, true},
		"a new machine is none of the voters": {[]string{"a", "a b!"}, false},
		"a new machine that fails is":         {[]string{"a", "a b", "a b!"}, true},
		"a surge with one silent":             {[]string{"a b c", "a b c!", "a b c! d"}, false},
		"in a disaster":                       {[]string{"a b c", "+", "a! b! c"}, false},
		"not yet back after a disaster":       {[]string{"a b c", "+", "a! b! c", "-", "a! b! c"}, false},
		"lost again after a disaster":         {[]string{"a b c", "+", "a! b! c", "-", "a b c", "a! b! c"}, true},
		"not yet lost in a disaster":          {[]string{"a b c", "+", "a b c", "a! b! c"}, false},
		"there is no etcd":                    {[]string{"a b c", ""}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var w World
			var err error
			for _, look := range c.looks {
				switch look {
				case "+", "-":
					w.Disaster("x/y", look == "+")
				default:
					_, _, err = w.Quorum("x/y", members(look))
				}
			}
			if (err != nil) != c.lost {
				t.Errorf("Quorum = %v, want an error: %t", err, c.lost)
			}
		})
	}
}

func TestSpared(t *testing.T) {
	for _, c := range []struct {
		voters, answering int
		want              bool
	}{{1, 1, false}, {2, 2, false}, {3, 3, true}, {3, 2, false}, {4, 4, true}, {4, 3, false}, {5, 5, true}, {5, 4, true}, {5, 3, false}} {
		if got := Spared(c.voters, c.answering); got != c.want {
			t.Errorf("Spared with %d of %d members = %t", c.answering, c.voters, got)
		}
	}
}

func TestRemoved(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	old := KnownMachine{ControlPlane: true, Created: now.Add(-time.Hour), Version: "v1"}
	worker := old
	worker.ControlPlane = false
	surge := Remedy{Cluster: "x/y", Victim: "victim", Baseline: []string{"victim", "m"}, Begun: now.Add(-time.Minute)}
	for name, c := range map[string]struct {
		world    func(*World)
		known    KnownMachine
		remedies []Remedy
		why      string // "" is a violation
	}{
		"a healthy one":                       {nil, old, nil, ""},
		"deleted by hand":                     {func(w *World) { w.Delete("m") }, old, nil, "by hand"},
		"unhealthy":                           {func(w *World) { w.BeginFault("m") }, old, nil, "remediation"},
		"just healed":                         {func(w *World) { w.BeginFault("m"); w.EndFault("m", now.Add(-time.Second)) }, old, nil, "remediation"},
		"healed long ago":                     {func(w *World) { w.BeginFault("m"); w.EndFault("m", now.Add(-time.Hour)) }, old, nil, ""},
		"another is unhealthy":                {func(w *World) { w.BeginFault("victim") }, old, []Remedy{surge}, ""},
		"outdated":                            {func(w *World) { w.Roll("x/y", now, "") }, old, nil, "rollout"},
		"newer than the rollout":              {func(w *World) { w.Roll("x/y", now.Add(-2*time.Hour), "") }, old, nil, ""},
		"a rollout does not touch workers":    {func(w *World) { w.Roll("x/y", now, "") }, worker, nil, ""},
		"of another version":                  {func(w *World) { w.Roll("x/y", now.Add(-2*time.Hour), "v2") }, worker, nil, "rollout"},
		"scaled away":                         {func(w *World) { w.Scale("x/y", 5, 3) }, old, nil, "scaled"},
		"scaled away, and more":               {func(w *World) { w.Scale("x/y", 5, 3); w.Counted("x/y", 3, now.Add(-time.Second)) }, old, nil, ""},
		"not yet scaled away":                 {func(w *World) { w.Scale("x/y", 5, 3); w.Counted("x/y", 4, now.Add(-time.Second)) }, old, nil, "scaled"},
		"still seen unhealthy":                {func(w *World) { w.BeginFault("m"); w.EndFault("m", now.Add(-time.Hour)); w.Lingers("m", now) }, old, nil, "remediation"},
		"no fault ever":                       {func(w *World) { w.Lingers("m", now) }, old, nil, ""},
		"scaled up":                           {func(w *World) { w.Scale("x/y", 3, 5) }, old, nil, ""},
		"the victim":                          {nil, old, []Remedy{{Cluster: "x/y", Victim: "m", Begun: now.Add(-time.Second)}}, "remediation"},
		"the victim, and healthy":             {nil, old, []Remedy{{Cluster: "x/y", Victim: "m", Begun: now, Baseline: []string{"m"}, Spurious: true}}, ""},
		"the victim, long ago":                {nil, old, []Remedy{{Cluster: "x/y", Victim: "m", Begun: now.Add(-time.Hour), Ended: now.Add(-time.Hour)}}, ""},
		"a machine that is not wanted":        {nil, old, []Remedy{{Cluster: "x/y", Victim: "victim", Baseline: []string{"victim"}, Begun: now.Add(-time.Minute)}}, "taken back"},
		"of another cluster's remediation":    {nil, old, []Remedy{{Cluster: "x/z", Victim: "victim", Baseline: []string{"victim"}, Begun: now.Add(-time.Minute)}}, ""},
		"long after the remediation's end":    {nil, old, []Remedy{{Cluster: "x/y", Victim: "victim", Begun: now.Add(-time.Hour), Ended: now.Add(-time.Minute)}}, ""},
		"before the remediation has begun":    {nil, old, []Remedy{{Cluster: "x/y", Victim: "victim", Begun: now.Add(time.Hour)}}, ""},
		"one that is in the baseline of some": {nil, old, []Remedy{surge}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			var w World
			if c.world != nil {
				c.world(&w)
			}
			why, err := w.Removed(Removal{Machine: "m", Cluster: "x/y", At: now}, c.known, c.remedies)
			if why != c.why || (err == nil) != (c.why != "") {
				t.Errorf("Removed = %q, %v, want %q", why, err, c.why)
			}
		})
	}
}

func TestScaledAwayOnce(t *testing.T) {
	var w World
	w.Scale("x/y", 4, 3)
	known := KnownMachine{ControlPlane: true, Created: time.Unix(1, 0)}
	if _, err := w.Removed(Removal{Machine: "m", Cluster: "x/y", At: time.Unix(9, 0)}, known, nil); err != nil {
		t.Error(err)
	}
	if _, err := w.Removed(Removal{Machine: "n", Cluster: "x/y", At: time.Unix(9, 0)}, known, nil); err == nil {
		t.Error("Removed accepted two deletions after one machine was scaled away")
	}
}

func TestCrowd(t *testing.T) {
	var w World
	if err := w.Crowd("x/y", 6, 3); err != nil {
		t.Error(err)
	}
	if err := w.Crowd("x/y", 7, 3); err == nil {
		t.Error("Crowd of 7 machines, 3 requested = nil, want an error")
	}
	w.Scale("x/y", 3, 5)
	w.Scale("x/y", 5, 3)
	if err := w.Crowd("x/y", 8, 3); err != nil {
		t.Errorf("Crowd before the control plane is scaled down = %v, want nil", err)
	}
	if err := w.Crowd("x/y", 9, 3); err == nil {
		t.Error("Crowd of 9 machines, 5 requested = nil, want an error")
	}
}

func TestOneActive(t *testing.T) {
	blue, green := Presence{Side: "blue", Exists: true}, Presence{Side: "green", Exists: true}
	paused := func(p Presence) Presence { p.Paused = true; return p }
	if err := OneActive("x/y", []Presence{blue, paused(green)}, []Presence{blue, paused(green)}); err != nil {
		t.Error(err)
	}
	if err := OneActive("x/y", []Presence{blue, paused(green)}, []Presence{paused(blue), green}); err != nil {
		t.Errorf("OneActive after a move between the looks = %v, want nil", err)
	}
	if err := OneActive("x/y", []Presence{blue, green}, []Presence{blue, green}); err == nil {
		t.Error("OneActive with two active sides = nil, want an error")
	}
}

func TestSomewhere(t *testing.T) {
	objects := []string{"Cluster c", "Secret c-ca"}
	if err := Somewhere("x/y", objects, map[string]bool{"Cluster c": true}, map[string]bool{"Secret c-ca": true}); err != nil {
		t.Errorf("Somewhere with objects missed once = %v, want nil", err)
	}
	err := Somewhere("x/y", objects, map[string]bool{"Cluster c": true}, map[string]bool{"Cluster c": true})
	if err == nil || !strings.Contains(err.Error(), "Secret c-ca") {
		t.Errorf("Somewhere with a lost object = %v, want an error with its name", err)
	}
}

func TestFlat(t *testing.T) {
	life := func(seconds int, goroutines, heap func(i int) int) Life {
		l := Life{Side: "blue", Started: time.Unix(0, 0)}
		for i := 0; i <= seconds; i += 5 {
			l.Samples = append(l.Samples, Usage{At: time.Unix(int64(i), 0), Goroutines: goroutines(i), Heap: heap(i)})
		}
		return l
	}
	constant := func(n int) func(int) int { return func(int) int { return n } }
	growing := func(n, by int) func(int) int { return func(i int) int { return n + i*by } }
	for name, c := range map[string]struct {
		life   Life
		judged bool
		bad    string
	}{
		"flat":             {life(300, constant(100), constant(50<<20)), true, ""},
		"peaks in between": {life(300, func(i int) int { return 100 + 900*(i/5%2) }, constant(50<<20)), true, ""},
		"an API server that is away at first": {life(135, func(i int) int {
			if i < 25 {
				return 305
			}
			return 410
		}, constant(50<<20)), true, ""},
		"too short":           {life(60, growing(100, 100), constant(50<<20)), false, ""},
		"goroutines leak":     {life(300, growing(100, 1), constant(50<<20)), true, "goroutines"},
		"memory leaks":        {life(300, constant(100), growing(50<<20, 1<<19)), true, "memory"},
		"nothing was sampled": {Life{}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			judged, err := c.life.Flat()
			if judged != c.judged || (err == nil) != (c.bad == "") || err != nil && !strings.HasPrefix(err.Error(), c.bad) {
				t.Errorf("Flat = %t, %v", judged, err)
			}
		})
	}
}
