package connect

import (
	"io"
	"strings"
	"testing"

	"scute.dev/eventlog/embedded"
)

// TestALogThatAnotherProcessHasOpenIsReadInAnotherWay checks that the advice for a locked log does not suggest to leave
// out --log if the log is that of local runs.
func TestALogThatAnotherProcessHasOpenIsReadInAnotherWay(t *testing.T) {
	dir := t.TempDir()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	for _, f := range []struct {
		local      bool
		want, none string
	}{{false, "leave out --log", "--local"}, {true, "wait until that process ends", "leave out --log"}} {
		flags := New()
		flags.Dir, flags.Local = dir, f.local
		_, err := flags.Log(t.Context(), io.Discard)
		if err == nil || !strings.Contains(err.Error(), f.want) || strings.Contains(err.Error(), f.none) {
			t.Errorf("local %v: got error %v", f.local, err)
		}
	}
}
