package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// TestTheConfigurationBeforeIsKept checks that a rollback restores the earlier file, even if the process crashes while
// the file is replaced.
func TestTheConfigurationBeforeIsKept(t *testing.T) {
	for name, stored := range map[string]bool{"before the record is stored": false, "when it is": true} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "applied.yaml")
			if err := os.WriteFile(file, []byte("old"), 0o600); err != nil {
				t.Fatal(err)
			}
			var record json.RawMessage
			dies := true
			attempt := func() *provider.Context {
				c := provider.NewContext(t.Context(), &task.Call{Run: "run", Task: "post-create", Undo: record, Record: func(_ context.Context, undo json.RawMessage, _ bool) error {
					if stored || !dies {
						record = undo
					}
					if dies {
						dies = false
						return errors.New("the process dies")
					}
					return nil
				}}, &access.Clusters{Local: true})
				return &c
			}
			w := &configWriter{sink: ConfigSink{File: file}}
			if err := w.writeFile(attempt(), []byte("new")); err == nil {
				t.Fatal("writeFile succeeded, want the error of Record")
			}
			if err := w.writeFile(attempt(), []byte("new")); err != nil {
				t.Fatal(err)
			}
			if got, _ := os.ReadFile(file); string(got) != "new" {
				t.Fatalf("file = %q, want new", got)
			}
			for range 2 { // the process may crash after an undo too
				if err := w.restore(attempt()); err != nil {
					t.Fatal(err)
				}
			}
			if got, _ := os.ReadFile(file); string(got) != "old" {
				t.Errorf("file after the rollback = %q, want old", got)
			}
		})
	}
}
