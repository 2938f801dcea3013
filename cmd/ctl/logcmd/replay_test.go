package logcmd

import (
	"encoding/json"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestUnreadableOfEveryKind checks that a replay counts unreadable events of any kind of object and continues.
func TestUnreadableOfEveryKind(t *testing.T) {
	log, count := logtest.Open(t), newCensus()
	kinds := []eventlog.Kind{eventlog.KindMove, eventlog.KindRun, eventlog.KindPause, eventlog.KindRemediation, eventlog.KindBackup}
	for _, kind := range kinds {
		_, err := log.Append(t.Context(), eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: kind, ID: "fleet/a/0"}, ID: "1",
			Events: []eventlog.Event{{Type: "dev.scute." + string(kind) + ".of-a-newer-program.v1", Data: json.RawMessage(`{}`)}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error { count.add(r); return nil }); err != nil {
		t.Fatal(err)
	}
	var unreadable uint64
	for _, n := range count.Unreadable {
		unreadable += n
	}
	if unreadable != uint64(len(kinds)) {
		t.Errorf("got %d unreadable commits, want %d: %v", unreadable, len(kinds), count.Unreadable)
	}
}
