package exec

import (
	"encoding/json"
	"os"
	"testing"

	"scute.dev/workflow/task"
)

// TestLogOfAnAttemptIsKept checks that a repeated attempt number does not overwrite the log.
func TestLogOfAnAttemptIsKept(t *testing.T) {
	exec := &Kind{Enabled: true}
	c := &task.Call{Run: "r", Task: "a/b", Attempt: 1, Dir: t.TempDir()}
	for _, word := range []string{"one", "two"} {
		c.With = json.RawMessage(`{"command": ["echo", "` + word + `"]}`)
		if _, err := exec.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(c.LogPath("")); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("log = %q, error %v", text, err)
	}
}
