package testbed

import (
	"context"
	"testing"
	"time"
)

// StartTimeout is long enough for a start that has to build the server binaries first.
const StartTimeout = 15 * time.Minute

// StartForTest starts a bed that stops at the end of the test. If the test fails, the logs are kept and the test prints
// their path.
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
