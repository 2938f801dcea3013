package comparison

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestWorseAfterACrash(t *testing.T) {
	moved := Ending{Left: Sides{Source: 27, Target: 5, SourcePaused: true, TargetPaused: true}, Again: "Succeeded", Then: Sides{Target: 27}, End: Sides{Target: 27}}
	with := func(change func(*Ending)) Ending {
		e := moved
		change(&e)
		return e
	}
	for name, c := range map[string]struct {
		scute Ending
		want  []string
	}{
		"moved":       {moved, nil},
		"rolled back": {with(func(e *Ending) { e.Again, e.End = "RolledBack", Sides{Source: 27} }), nil},
		"failed":      {with(func(e *Ending) { e.Again = "Failed" }), []string{"the move is Failed"}},
		"by hand":     {with(func(e *Ending) { e.ByHand = "unpaused" }), []string{"somebody had to do something: unpaused"}},
		"on both":     {with(func(e *Ending) { e.End.Source = 3 }), []string{"3 objects are at the source and 27 on the target"}},
		"on neither":  {with(func(e *Ending) { e.End.Missing = 2 }), []string{"2 objects are on neither side"}},
		"new":         {with(func(e *Ending) { e.End.New = 4 }), []string{"4 objects were not there before"}},
		"paused":      {with(func(e *Ending) { e.End.TargetPaused = true }), []string{"something is still paused, or has a mark of the move"}},
		"replaced":    {with(func(e *Ending) { e.Made, e.Removed = 1, 1 }), []string{"1 machines were made and 1 removed"}},
	} {
		t.Run(name, func(t *testing.T) {
			got := (&Crash{Scute: c.scute}).Worse()
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
			if c.scute.Again == "Succeeded" && c.scute.ByHand == "" && c.scute.Whole() != (len(got) == 0) {
				t.Errorf("Whole = %t, want the opposite", c.scute.Whole())
			}
		})
	}
}

func TestPageOfCrashes(t *testing.T) {
	split := Sides{Source: 22, Target: 27, SourcePaused: true, TargetPaused: true}
	crashes := []Crash{
		{Name: "b", Clusterctl: Ending{Again: "exit status 1: a | b", ByHand: "unpaused", End: split, Made: 1}, Scute: Ending{Left: split, Again: "Succeeded", End: Sides{Target: 27}}},
		{Name: "a", Clusterctl: Ending{End: Sides{Source: 27}}, Scute: Ending{End: Sides{Missing: 1, New: 2}}},
	}
	page, err := WriteCrashes("# A page\n", "v1", crashes)
	if err != nil {
		t.Fatal(err)
	}
	want := `# A page

<!-- make comparison-move writes this: Cluster API v1 -->

### Cluster API v1

| killed | program | source, target | run again | source, target | by hand | source, target | machines |
|---|---|---|---|---|---|---|---|
| a | clusterctl | 0, 0 |  | 0, 0 | nothing | 27, 0 | the same |
| | scute | 0, 0 |  | 0, 0 | nothing | **0, 0; 1 on neither; 2 new** | the same |
| b | clusterctl | 0, 0 | exit status 1: a \| b | 0, 0 | unpaused | **22 paused, 27 paused** | **1 made, 0 removed** |
| | scute | 22 paused, 27 paused | Succeeded | 0, 0 | nothing | 0, 27 | the same |

<!-- end of Cluster API v1 -->
`
	if diff := cmp.Diff(want, page); diff != "" {
		t.Error(diff)
	}
}
