package logcmd

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// TestVerifyALogThatGrows checks that commits that are appended during the verification make no difference.
func TestVerifyALogThatGrows(t *testing.T) {
	log, of := logtest.Open(t), eventlog.Aggregate{Kind: eventlog.KindPause, ID: "fleet/a/0"}
	head := appendPause(t, log, of, appendPause(t, log, of, 0, "requested"), "claimed")
	count := newCensus()
	if _, err := log.Replay(t.Context(), 0, func(r eventlog.Record) error { count.add(r); return nil }); err != nil {
		t.Fatal(err)
	}
	count.close(&kit.Kit{Env: &cli.Env{}, Flags: connect.New()}, head)
	verify := func() string {
		t.Helper()
		differ, err := new(replayOptions).verify(t.Context(), &connect.Log{Log: log}, count)
		if err != nil || differ != nil {
			t.Fatal(err, differ)
		}
		return count.States
	}
	before := verify()
	appendPause(t, log, of, head, "released")
	if after := verify(); after != before {
		t.Errorf("hash of the states up to commit %d = %s, and %s after another commit", head, before, after)
	}
}

func appendPause(t *testing.T, log *eventlog.Log, of eventlog.Aggregate, after uint64, fact string) uint64 {
	t.Helper()
	receipt, err := log.Append(t.Context(), eventlog.Commit{
		Aggregate: of, ID: fmt.Sprint(after), Expected: after,
		Events: []eventlog.Event{{Type: "dev.scute.pause." + fact + ".v1", Time: time.Now(), Actor: "user/test", Data: json.RawMessage(`{}`)}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return receipt.Seq
}
