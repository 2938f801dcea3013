package run

import (
	"strings"
	"testing"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// TestARunIsShownFromItsFirstCommit checks that a terminal does not show a new run before a commit
// of it was read: the run would have no name, and seem to wait for a process.
func TestARunIsShownFromItsFirstCommit(t *testing.T) {
	var out strings.Builder
	env := cli.System("scutectl", "test")
	env.Size = func(any) (int, int, bool) { return 80, 24, true }
	d := &deps{noun: newNoun(), Kit: &kit.Kit{Env: env}}
	shown := &display{deps: d, out: &out, screen: &cli.Screen{Out: &out, Size: env.Size}, fold: NewFold("default/new/1")}
	shown.draw()
	if out.Len() > 0 {
		t.Errorf("without a commit: %q", out.String())
	}
	shown.fold.Seq = 1
	if shown.draw(); out.Len() == 0 {
		t.Error("nothing is shown after a commit")
	}
}
