package projection

import (
	"context"
	"testing"

	"scute.dev/internal/earlier"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

// TestLogOfAnEarlierVersion checks that the log of an earlier version is replayed completely.
func TestLogOfAnEarlierVersion(t *testing.T) {
	log := earlier.Open(t, "../..")
	head, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	v := New(usage.Limits{})
	p := projector.New(log, v, projector.Options{Name: "test"})
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() { ended <- p.Run(ctx) }()
	<-p.CaughtUp()
	stop()
	<-ended
	if got := p.Position(); got != head {
		t.Errorf("Position = %d, want %d", got, head)
	}
	if state, _ := v.Trust.State(); state.Cluster != "earlier" {
		t.Errorf("the log belongs to management cluster %q", state.Cluster)
	}
}
