package logtest

import (
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

// Open opens an empty log in a new folder, and closes it when the test ends.
func Open(t testing.TB) *eventlog.Log {
	t.Helper()
	return OpenIn(t, t.TempDir())
}

// OpenIn opens the log in a folder, and closes it when the test ends.
func OpenIn(t testing.TB, dir string) *eventlog.Log {
	t.Helper()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := log.Close(); err != nil {
			t.Error(err)
		}
	})
	return log
}
