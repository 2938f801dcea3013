package doctor

import (
	"bytes"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

func printed(width int, r Result) string {
	var out bytes.Buffer
	o := &options{Kit: &kit.Kit{Env: &cli.Env{
		Out: &out, Color: cli.ColorNever, Size: func(any) (int, int, bool) { return width, 24, width > 0 },
	}}}
	_ = o.Print(o.lines(r))
	return out.String()
}

func TestAResultIsOneLineInAPipeAndFitsATerminal(t *testing.T) {
	r := problem("event log", "raise its limit and, if need be, its volume", "%d of %d MiB", 1000, 1024)
	if diff := cmp.Diff("problem  event log      1000 of 1024 MiB; remedy: raise its limit and, if need be, its volume\n", printed(0, r)); diff != "" {
		t.Error(diff)
	}
	want := `problem  event log      1000 of 1024 MiB
                        → raise its limit and,
                          if need be, its
                          volume
`
	if diff := cmp.Diff(want, printed(46, r)); diff != "" {
		t.Error(diff)
	}
}

func TestWhatIsWrongWithALogHasItsRemedy(t *testing.T) {
	for err, level := range map[error]Level{
		eventlog.ErrGap: Problem, eventlog.ErrConfig: Problem, eventlog.ErrLocked: Warning, errors.New("something else"): Problem,
	} {
		r := explainLog("event log", &connect.Flags{Dir: "log"}, fmt.Errorf("opening: %w", err))
		if r.Level != level || r.Remedy == "" {
			t.Errorf("%v: %+v", err, r)
		}
	}
}
