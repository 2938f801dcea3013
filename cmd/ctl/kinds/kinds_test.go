package kinds_test

import (
	"testing"

	"scute.dev/cmd/ctl/kinds"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// TestNew checks that each domain has a fold, except for the events of the daemon about its log.
func TestNew(t *testing.T) {
	for _, d := range kit.Domains() {
		if f := kinds.New(eventlog.Aggregate{Kind: d.Kind, ID: "fleet/a/1"}); (f == nil) != (d.Kind == eventlog.KindDaemon) {
			t.Errorf("New of kind %s = %v", d.Kind, f)
		}
	}
}
