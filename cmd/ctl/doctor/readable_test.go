package doctor

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"scute.dev/api/v1alpha1"
)

func TestWhatCannotBeReadHasItsFieldAndItsRemedy(t *testing.T) {
	for _, c := range []struct {
		kind  string
		into  readableObject
		parts string
		want  result
	}{
		{"Move", &v1alpha1.Move{}, `"spec":{"timeouts":{"create":"1d"}}`, problem("resources",
			"its spec is immutable: create another one without the mistake, and delete this one: kubectl -n fleet delete move bad",
			`Move fleet/bad: spec.timeouts.create cannot be read: "1d" is not a duration: write it in h, m and s, such as 90s, 5m or 1h30m`)},
		{"RepairPolicy", &v1alpha1.RepairPolicy{}, `"spec":{"selector":[]}`, problem("resources",
			"correct the field: kubectl -n fleet edit repairpolicy bad",
			`RepairPolicy fleet/bad: spec.selector cannot be read: it is of type array, and must be v1.LabelSelector`)},
		{"RepairLimits", &v1alpha1.RepairLimits{}, `"spec":{"window":[]}`, problem("resources",
			"correct the field: kubectl edit repairlimits bad",
			`RepairLimits bad: spec.window cannot be read: [] is not a duration: write it in quotes, such as "90s" or "5m"`)},
		{"WorkflowRun", &v1alpha1.WorkflowRun{}, `"status":{"startedAt":[]}`, warning("resources",
			"wait: scuted writes the status again; if it does not, check scuted above, and its log lines",
			`WorkflowRun fleet/bad: status.startedAt cannot be read: it is of type array, and must be string`)},
	} {
		namespace := `"namespace":"fleet",`
		if c.kind == "RepairLimits" {
			namespace = ""
		}
		if err := json.Unmarshal([]byte(`{"metadata":{`+namespace+`"name":"bad"},`+c.parts+`}`), c.into); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(c.want, unreadableResult("resources", c.kind, c.into)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", c.kind, diff)
		}
	}
}
