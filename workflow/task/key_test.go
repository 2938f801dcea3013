package task

import (
	"path/filepath"
	"strings"
	"testing"
)

// calls returns attempts of different steps, and of undos, with similar names.
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
		{Call{Run: "fleet/run/1", Task: "a/b"}, "fleet/run/1/a/b"}, // unchanged: such keys are stored in clusters and on other servers
		{Call{Run: "fleet/run/1", Task: "a", Step: "before/x"}, "fleet/run/1/a@before/x"},
		{Call{Run: "fleet/run/1", Task: "a", Undoing: true}, "fleet/run/1/a:undo"},
	} {
		if got := c.call.Key(); got != c.want {
			t.Errorf("Key = %s, want %s", got, c.want)
		}
	}
}

// TestRequestKeys checks that the keys of requests differ between failures, so that a server that ignores repeated keys
// receives each of them.
func TestRequestKeys(t *testing.T) {
	call := func(number int, failure *Failure) string {
		return (&Call{Run: "fleet/run/1", Task: "onFailure/page", Step: "a", Execution: number, Failure: failure}).RequestKey()
	}
	first, second := call(1, &Failure{}), call(2, &Failure{})
	if first == second || second != call(2, &Failure{}) {
		t.Errorf("keys for two failures = %s and %s", first, second)
	}
	if call(1, nil) != call(2, nil) {
		t.Error("the key of a step that runs again has changed")
	}
}

func TestLogFiles(t *testing.T) {
	dir := t.TempDir()
	seen := make(map[string]bool)
	for _, c := range calls(dir) {
		for _, suffix := range []string{"", "-pods"} {
			path := c.LogPath(suffix)
			if seen[path] {
				t.Errorf("two attempts have the log %s", path)
			}
			seen[path] = true
			if filepath.Dir(path) != dir || len(filepath.Base(path)) > 255 || strings.HasPrefix(filepath.Base(path), ".") {
				t.Errorf("log %s is not a visible file in the run's folder", path)
			}
		}
	}
	c := Call{Dir: dir, Task: "net/install", Step: "before/check", Attempt: 2}
	if got := filepath.Base(c.LogPath("")); got != "net+install@before+check-2.log" {
		t.Errorf("log = %s", got)
	}
}
