package runner_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"scute.dev/eventlog/logtest"
	"scute.dev/mover"
)

// TestRecord leaves a move at each point at which a process can die, forward and in a rollback, and one that is over of each.
func TestRecord(t *testing.T) {
	l := logtest.OpenIn(t, os.Getenv("RECORD"))
	for name, fail := range map[string]map[mover.Step]mover.StepFailed{
		"forward": nil, "back": {mover.VerifyCopies: {Message: "it differs", Final: true}},
	} {
		for n, over := 0, false; !over; n++ {
			id, w, left := fmt.Sprintf("fleet/%s-%02d/uid", name, n), newWorld(4), n
			w.fail = fail
			w.before = func(context.Context, mover.Step) error {
				if left--; left < 0 {
					return errDead
				}
				return nil
			}
			r := process("earlier", l, w)
			r.Home = mover.Home{Cluster: "earlier", Log: l.ID()}
			spec := aSpec()
			spec.Name = fmt.Sprintf("%s-%02d", name, n)
			if err := r.Request(t.Context(), id, "resource/fleet/"+spec.Name, spec); err != nil {
				t.Fatal(err)
			}
			err := r.Drive(t.Context(), id)
			if over = err == nil; !over && !errors.Is(err, errDead) {
				t.Fatal(err)
			}
		}
	}
}
