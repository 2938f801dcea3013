package testbed

import (
	"context"
	"testing"
	"time"
)

// StartTimeout is enough for a start that has to build the server binaries first.
const StartTimeout = 15 * time.Minute

// StartForTest starts a bed that stops at the end of the test. If the test failed, the logs stay and the test says
// where they are.
func StartForTest(t testing.TB, opts Options) *Bed {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), StartTimeout)
	defer cancel()
	b, err := Start(ctx, opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if t.Failed() {
			b.Keep()
		}
		if err := b.Stop(); err != nil {
			t.Error(err)
		}
	})
	return b
}
