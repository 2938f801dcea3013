package page_test

import (
	"encoding/json"
	"strings"
	"testing"

	"scute.dev/ui/uitest"
	"scute.dev/workflow"
)

// TestMigration checks that the page of a run shows the changes of its definition and the actions for them.
func TestMigration(t *testing.T) {
	task := func(name, command string) workflow.Task {
		return workflow.Task{Name: name, Stage: workflow.StageMain, Policy: "Abort", Steps: []workflow.Step{{Kind: "Exec", With: json.RawMessage(`{"command":["` + command + `"]}`)}}}
	}
	header := workflow.Header{Namespace: "fleet", Name: "large", Policy: "Abort"}
	f := uitest.Feed(t)
	write(t, f, []workflow.Event{
		workflow.Defined{Of: 1, Tasks: []workflow.Task{task("same", "true"), task("edited", "false"), task("gone", "true")}},
		workflow.Started{Header: header, Hash: "0123456789abcdef"},
		workflow.Defined{Of: 1, Tasks: []workflow.Task{task("same", "true"), task("edited", "<b>"), task("new", "true")}},
		workflow.Migrated{Header: header, Hash: "fedcba9876543210", Plan: []workflow.Change{
			{Task: "same", Kind: workflow.Unchanged, Action: workflow.Keep},
			{Task: "edited", Kind: workflow.Changed, Action: workflow.Rerun, Note: "as <i>said</i>"},
			{Task: "new", Kind: workflow.Added, Action: workflow.Run},
			{Task: "gone", Kind: workflow.Removed, Action: workflow.Forget},
		}},
	})
	s := site(t, f)
	body := show(t, s, "/run?id=fleet/large/1")
	for _, want := range []string{
		`from definition <code>0123456789ab</code> to <code>fedcba987654</code>`,
		`<th scope="row">edited</th><td>changed</td><td>rerun</td><td class="say">as &lt;i&gt;said&lt;/i&gt;</td>`,
		`<th scope="row">gone</th><td>removed</td><td>forget</td>`,
		`<td>with.command</td><td><del>[&#34;false&#34;]</del></td><td><ins>[&#34;\u003cb\u003e&#34;]</ins></td>`,
	} {
		if !strings.Contains(body, want) {
			t.Errorf("the page does not contain %s", want)
		}
	}
	if strings.Contains(body, `<th scope="row">same</th><td>unchanged`) {
		t.Error("an unchanged task is listed")
	}
}
