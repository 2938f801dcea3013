package feed

import (
	"testing"

	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// TestNewFold checks that each domain has a fold, except for the events of the daemon about its log.
func TestNewFold(t *testing.T) {
	for _, d := range kit.Domains() {
		if f := NewFold(eventlog.Aggregate{Kind: d.Kind, ID: "fleet/a/1"}); (f == nil) != (d.Kind == eventlog.KindDaemon) {
			t.Errorf("NewFold of kind %s = %v", d.Kind, f)
		}
	}
}
