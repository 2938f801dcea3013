package task

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// calls are attempts of different steps, and of undos, whose names are easily taken for each other.
func calls(dir string) []*Call {
	long := strings.Repeat("x", 200)
	list := []*Call{
		{Task: "a/b"},
		{Task: "a-b"},
		{Task: "a+b"},
		{Task: "a%2Fb"},
		{Task: "a@b"},
		{Task: "a", Step: "b"},
		{Task: "a:undo"},
		{Task: "a-undo"},
		{Task: "a"},
		{Task: "a", Step: "before/x"},
		{Task: "a/before/x"},
		{Task: "a-before-x"},
		{Task: "a", Step: "before/x:undo"},
		{Task: "onFailure/h", Step: "b/c"},
		{Task: "onFailure/h/b", Step: "c"},
		{Task: "onFailure/h", Step: "undo"},
		{Task: long + "1"},
		{Task: long + "2"},
		{Task: "1" + long},
		{Task: ".a"},
		{Task: "a", Attempt: 11},
		{Task: "a-1"},
		{Task: "a-undo1"},
	}
	for _, c := range list {
		c.Run, c.Dir, c.Attempt = "fleet/run/1", dir, max(c.Attempt, 1)
		undo := *c
		undo.Undoing = true
		list = append(list, &undo)
	}
	return list
}

func TestKeysAreDistinct(t *testing.T) {
	seen := make(map[string]*Call)
	for _, c := range calls("") {
		if c.Attempt > 1 {
			continue // the key is the same for all attempts
		}
		if other := seen[c.Key()]; other != nil {
			t.Errorf("%+v\nand\n%+v\nhave the key %s", c, other, c.Key())
		}
		seen[c.Key()] = c
	}
	for _, c := range []struct {
		call Call
		want string
	}{
		{Call{Run: "fleet/run/1", Task: "a/b"}, "fleet/run/1/a/b"}, // as ever: such keys are in clusters and in other people's servers
		{Call{Run: "fleet/run/1", Task: "a", Step: "before/x"}, "fleet/run/1/a@before/x"},
		{Call{Run: "fleet/run/1", Task: "a", Undoing: true}, "fleet/run/1/a:undo"},
		{Call{Run: "fleet/run/1", Task: "a", Step: "before/x", OldKeys: true}, "fleet/run/1/a/before/x"},
		{Call{Run: "fleet/run/1", Task: "a", Undoing: true, OldKeys: true}, "fleet/run/1/a"},
	} {
		if got := c.call.Key(); got != c.want {
			t.Errorf("the key is %s, want %s", got, c.want)
		}
	}
}

// A Job that undoes a Job is another one, and so is a Move that moves back.
func TestUndoHasObjectsOfItsOwn(t *testing.T) {
	do := &Call{Run: "fleet/run/1", Namespace: "fleet", Name: "run", Task: "a", Attempt: 1}
	undo := *do
	undo.Undoing = true
	for what, name := range map[string]func(*Call) string{
		"Job": jobName, "label of Jobs": func(c *Call) string { return stepJobs(c, "fleet").LabelSelector },
		"Move resource": resourceBase, "local move": (&Move{}).localBase,
	} {
		if name(do) == name(&undo) {
			t.Errorf("%s: the undo has the name of what it takes back: %s", what, name(do))
		}
	}
	if do.StepKey() != undo.StepKey() {
		t.Errorf("an undo by Apply would not find the objects that the step made: %s and %s", do.StepKey(), undo.StepKey())
	}
}

func TestLogFiles(t *testing.T) {
	dir := t.TempDir()
	seen := make(map[string]bool)
	for _, c := range calls(dir) {
		for _, suffix := range []string{"", "-pods"} {
			path := logPath(c, suffix)
			if seen[path] {
				t.Errorf("two attempts have the log %s", path)
			}
			seen[path] = true
			if filepath.Dir(path) != dir || len(filepath.Base(path)) > 255 || strings.HasPrefix(filepath.Base(path), ".") {
				t.Errorf("the log %s is not a visible file of the run's folder", path)
			}
		}
	}
	c := Call{Dir: dir, Task: "net/install", Step: "before/check", Attempt: 2}
	if got := filepath.Base(logPath(&c, "")); got != "net+install@before+check-2.log" {
		t.Errorf("the log is %s", got)
	}
}

// What an attempt said is not lost when its number is used again.
func TestLogOfAnAttemptIsKept(t *testing.T) {
	exec := &Exec{Enabled: true}
	c := &Call{Run: "r", Task: "a/b", Attempt: 1, Dir: t.TempDir()}
	for _, word := range []string{"one", "two"} {
		c.With = json.RawMessage(`{"command": ["echo", "` + word + `"]}`)
		if _, err := exec.Run(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if text, err := os.ReadFile(logPath(c, "")); err != nil || string(text) != "one\ntwo\n" {
		t.Errorf("the log holds %q, %v", text, err)
	}
}
