package runner

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"scute.dev/workflow"
)

// TestTheLatestProgressIsRecorded checks that changes of a progress message are recorded at a limited rate, and that
// the log gets the latest message.
func TestTheLatestProgressIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &drive{reports: make(chan report, 10)}
		say := d.progress(t.Context(), workflow.Effect{EffectID: workflow.EffectID{Kind: workflow.EffectAct, Task: "job"}})
		said := func() (messages []string) {
			time.Sleep(progressInterval)
			synctest.Wait()
			for len(d.reports) > 0 {
				r := <-d.reports
				messages = append(messages, r.in.(workflow.ActProgressed).Message)
			}
			return messages
		}
		say("0 pods active")
		say("1 pods active")
		say("2 pods active")
		if diff := cmp.Diff([]string{"0 pods active", "2 pods active"}, said()); diff != "" {
			t.Error(diff)
		}
		say("3 pods active")
		say("2 pods active")
		say("3 pods active")
		if diff := cmp.Diff([]string{"3 pods active"}, said()); diff != "" {
			t.Error(diff)
		}
	})
}
