package comparison

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestWorse(t *testing.T) {
	well := Outcome{End: "replaced", After: 20 * time.Second, Members: 2}
	stuck := Outcome{Missing: "m-1 is there", After: time.Minute, Members: 3}
	with := func(change func(*Outcome)) Outcome {
		o := well
		change(&o)
		return o
	}
	for name, c := range map[string]struct {
		plain, scute Outcome
		want         []string
	}{
		"the same":              {well, well, nil},
		"more members":          {well, with(func(o *Outcome) { o.Members = 3 }), nil},
		"fewer members":         {well, with(func(o *Outcome) { o.Members = 1 }), []string{"1 members answered at some time, not 2"}},
		"does not end":          {well, stuck, []string{"it does not end well: m-1 is there"}},
		"neither ends":          {stuck, stuck, nil},
		"only scute ends":       {stuck, well, nil},
		"a machine is lost":     {well, with(func(o *Outcome) { o.Lost = 1 }), []string{"1 healthy machines are lost, not 0"}},
		"both lose one":         {with(func(o *Outcome) { o.Lost = 1 }), with(func(o *Outcome) { o.Lost = 1 }), nil},
		"unserved":              {well, with(func(o *Outcome) { o.Unserved = true }), []string{"the API server was unavailable"}},
		"unserved by the plain": {with(func(o *Outcome) { o.Unserved = true }), well, nil},
		"touched":               {stuck, with(func(o *Outcome) { o.Touched = true }), []string{"machines were touched that must be left alone"}},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(c.want, (&Case{Plain: c.plain, Scute: c.scute}).Worse()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestSlower(t *testing.T) {
	of := func(plain, scute time.Duration) string {
		c := Case{Plain: Outcome{End: "replaced", After: plain}, Scute: Outcome{End: "replaced", After: scute}}
		return c.Slower(30 * time.Second)
	}
	if got := of(10*time.Second, 40*time.Second); got != "" {
		t.Errorf("Slower for one turn longer = %q, want none", got)
	}
	if got := of(10*time.Second, 41*time.Second); !strings.Contains(got, "31s longer") {
		t.Errorf("Slower for more than one turn longer = %q, want 31s", got)
	}
	stuck := Case{Plain: Outcome{After: time.Second}, Scute: Outcome{End: "replaced", After: time.Hour}}
	if got := stuck.Slower(time.Second); got != "" {
		t.Errorf("Slower if the plain system does not end = %q, want none", got)
	}
}

func TestPage(t *testing.T) {
	replaced := Outcome{End: "replaced", After: 1400 * time.Millisecond, Members: 3}
	cases := []Case{
		{Name: "b", Plain: replaced, Scute: replaced},
		{Name: "ten", Row: "R10", Plain: Outcome{After: time.Minute, Members: None}, Scute: replaced},
		{Name: "two", Row: "R2", Plain: Outcome{End: "replaced", After: time.Second, Members: 1, Unserved: true, Lost: 1}, Scute: replaced},
	}
	first, err := Write("# A page\n\nText.\n", "v1", cases)
	if err != nil {
		t.Fatal(err)
	}
	want := `# A page

Text.

<!-- make comparison writes this: Cluster API v1 -->

### Cluster API v1

| fault | plain: ends | after | members | scute: ends | after | members |
|---|---|---|---|---|---|---|
| two (R2) | replaced, **1 healthy machines lost** | 1 s | 1, API server unavailable | replaced | 1 s | 3 |
| ten (R10) | **not repaired** | not within 60 s | - | replaced | 1 s | 3 |
| b | replaced | 1 s | 3 | replaced | 1 s | 3 |

<!-- end of Cluster API v1 -->
`
	if diff := cmp.Diff(want, first); diff != "" {
		t.Error(diff)
	}
	both, err := Write(first+"\nMore.\n", "v2", cases[:1])
	if err != nil {
		t.Fatal(err)
	}
	again, err := Write(both, "v1", cases[:1])
	if err != nil {
		t.Fatal(err)
	}
	for text, n := range map[string]int{"### Cluster API v1\n": 1, "### Cluster API v2\n": 1, "| two (R2)": 1, "| ten (R10) | **not repaired** | not within 60 s | - | replaced | 1 s | 3 |\n": 1, "| b |": 2, "\nMore.\n": 1} {
		if got := strings.Count(again, text); got != n {
			t.Errorf("%q occurs %d times in the page, want %d:\n%s", text, got, n, again)
		}
	}
	if _, err := Write(strings.Replace(first, "<!-- end of", "<!-- no end of", 1), "v1", cases); err == nil {
		t.Error("Write of a page without the end of its table = nil, want an error")
	}
}
