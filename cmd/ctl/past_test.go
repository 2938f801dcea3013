package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/aggregate"
	"scute.dev/backup/schedule"
	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/ui/uitest"
)

// TestPast checks that `get --at` shows an object as a replay up to that commit does.
func TestPast(t *testing.T) {
	dir := t.TempDir()
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	histories := uitest.SavedHistories(t, "../..")
	for _, h := range histories {
		if h.Aggregate.ID == "fleet/rolled-back/1" { // a run is found by its ID
			h.Aggregate.ID = "workflows/rolls-back/1"
		}
	}
	uitest.WriteInterleaved(t, log, histories)
	schedules := aggregate.Root[schedule.Event, *schedule.State]{
		Log: log, Catalog: schedule.NewCatalog(), Name: eventlog.Aggregate{Kind: eventlog.KindBackup, ID: "fleet/nightly/1"}, Actor: "test", State: new(schedule.State),
	}
	configured := schedule.Configured{Spec: schedule.Spec{Namespace: "fleet", Name: "nightly", Schedule: "0 3 * * *", TimeZone: "Etc/UTC", All: true, Generation: 1}}
	if err := schedules.Append(t.Context(), configured); err != nil {
		t.Fatal(err)
	}
	head, err := log.Head(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	show := func(args ...string) (shown map[string]any, code int) {
		t.Helper()
		var out, messages bytes.Buffer
		env := cli.System("scutectl", "test")
		env.Out, env.Err = &out, &messages
		args = append(args, "--log", dir, "-o", "json")
		if code := app.Run(t.Context(), env, args); code != 0 {
			return nil, code
		}
		if err := json.Unmarshal(out.Bytes(), &shown); err != nil {
			t.Fatalf("scutectl %s: %v\n%s%s", strings.Join(args, " "), err, &out, &messages)
		}
		return shown, 0
	}
	for _, c := range []struct{ noun, namespace, name, aggregate string }{
		{"move", "world-wiped", "go", "move/fleet/target-wiped/1"},
		{"run", "workflows", "rolls-back", "run/workflows/rolls-back/1"},
		{"pause", "mute", "maintenance", "pause/fleet/timed-out/1"},
		{"backupschedule", "fleet", "nightly", "backup/fleet/nightly/1"},
	} {
		compared := 0
		for back := uint64(0); back < head; back += 13 {
			at := fmt.Sprint(head - back)
			want, code := show("log", "replay", "--aggregate", c.aggregate, "--at", at)
			got, gotCode := show("get", c.noun, c.name, "-n", c.namespace, "--at", at)
			if code != gotCode {
				t.Errorf("%s at %s: exit code of replay is %d, of get %d", c.aggregate, at, code, gotCode)
			}
			if code != 0 || gotCode != 0 {
				continue
			}
			compared++
			if diff := cmp.Diff(want[c.noun], any(got)); diff != "" {
				t.Errorf("%s at %s (-replay +get):\n%s", c.aggregate, at, diff)
			}
		}
		if compared == 0 {
			t.Errorf("%s was not compared", c.aggregate)
		}
	}
}
