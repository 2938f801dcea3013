package eventlog

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// TestLateHead checks that reaches asks a leader again that does not know the end of the log yet, and reports lost
// commits if the end never appears.
func TestLateHead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		ask := func(context.Context) (jetstream.StreamState, error) {
			if time.Since(start) < 3*time.Second {
				return jetstream.StreamState{LastSeq: 6}, nil
			}
			return jetstream.StreamState{LastSeq: 7}, nil
		}
		if state, err := waitForHead(t.Context(), ask, 7, headTimeout); err != nil || state.LastSeq != 7 {
			t.Errorf("reaches = %+v, error %v, want sequence 7", state, err)
		}
		_, err := waitForHead(t.Context(), ask, 8, headTimeout)
		if !errors.Is(err, ErrGap) || !strings.Contains(err.Error(), "ends at 7, but commit 8") {
			t.Error(err)
		}
		if took := time.Since(start); took < headTimeout {
			t.Errorf("reaches failed after %s, want at least headPatience", took)
		}
	})
}

// TestDerivedIdentity checks that two writers that open an older stream concurrently derive the same ID.
func TestDerivedIdentity(t *testing.T) {
	created := time.Date(2026, 3, 4, 5, 6, 7, 89, time.UTC)
	info := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: "SCUTE"}, Created: created}
	other := &jetstream.StreamInfo{Config: jetstream.StreamConfig{Name: "SCUTE"}, Created: created.Add(1)}
	if a, b := identity(info), identity(info); a != b || a == identity(other) {
		t.Errorf("identity = %q and %q, and %q for another stream", a, b, identity(other))
	}
}
