package runner

import (
	"encoding/json"
	"testing"

	"scute.dev/eventlog"
	"scute.dev/workflow"
)

// TestDigest checks that the digest includes each event of a client that can change what a run does, and no event that
// only stops or continues it.
func TestDigest(t *testing.T) {
	plain := map[string]any{
		"paused": workflow.Paused{}, "resumed": workflow.Resumed{Rerun: []string{"a"}}, "aborted": workflow.Aborted{},
		"retry": workflow.Decided{Task: "a", Action: workflow.ActRetry}, "held": workflow.TaskPaused{Task: "a", Reason: workflow.ReasonHeld},
		"released": workflow.TaskReleased{Task: "a"}, "rollback": workflow.RollbackStarted{}, "abandoned": workflow.Ended{},
	}
	brings := map[string]any{
		"inputs": workflow.Decided{Task: "a", With: json.RawMessage(`{}`)}, "an output": workflow.Decided{Task: "a", Output: json.RawMessage(`1`)},
		"an output of a paused task": workflow.TaskPaused{Task: "a", Output: json.RawMessage(`1`)},
	}
	catalog := workflow.NewCatalog()
	event := func(e any, actor string) eventlog.Event {
		ev, err := catalog.Encode(e.(workflow.Event)) //nolint:forcetypeassert // they are
		if err != nil {
			t.Fatal(err)
		}
		ev.Actor = actor
		return ev
	}
	for name, e := range plain {
		if got := Digest("before", event(e, "user/a")); got != "before" {
			t.Errorf("event %s changes the digest", name)
		}
	}
	for name, e := range brings {
		if got := Digest("before", event(e, "user/a")); got == "before" {
			t.Errorf("event %s does not change the digest", name)
		}
	}
	listed := make(map[string]bool)
	for _, name := range harmlessEvents {
		listed["dev.scute.run."+name+".v1"] = true
	}
	for typ := range catalog.Types() {
		for _, actor := range []string{"user/a", "local/daemon/one", "daemon", "nonsense"} {
			if got := Digest("", eventlog.Event{Type: typ, Actor: actor, Data: []byte(`{}`)}); (got == "") != listed[typ] {
				t.Errorf("%s of %s: digest %q", typ, actor, got)
			}
		}
		for _, actor := range []string{"daemon/one", "resource/ns/name"} {
			if got := Digest("", eventlog.Event{Type: typ, Actor: actor, Data: []byte(`{"with":1}`)}); got != "" {
				t.Errorf("%s of %s changes the digest", typ, actor)
			}
		}
		delete(listed, typ)
	}
	if len(listed) > 0 {
		t.Errorf("types that are not in the catalog: %v", listed)
	}
}
