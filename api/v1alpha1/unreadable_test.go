package v1alpha1

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
)

func TestUnreadable(t *testing.T) {
	for _, c := range []struct {
		stored, field, says string
		o                   interface{ Unread() *UnreadablePart }
	}{
		{`{"spec":{"tasks":[{"name":"a","kind":"Exec","needs":"web"}]}}`, "spec.tasks[0].needs", "string", &WorkflowRun{}},
		{`{"spec":{"tasks":[{"name":"a"},{"name":"b","needs":["a",{"task":"a","frm":1}]}]}}`, "spec.tasks[1].needs[1].frm", "unknown field", &WorkflowRun{}},
		{`{"spec":{"deadline":"1d"}}`, "spec.deadline", "such as 90s", &WorkflowRun{}},
		{`{"spec":{"timeouts":{"acknowledgeKinds":{"A.b":"5m","C.d":7}}}}`, "spec.timeouts.acknowledgeKinds.C.d", "in quotes", &Move{}},
		{`{"spec":{"dryRun":"yes"}}`, "spec.dryRun", "it is of type string, and must be bool", &Move{}},
		{`{"spec":[]}`, "spec", "array", &RepairPolicy{}},
		{`{"spec":{"limits":{"atOnce":3000000000}}}`, "spec.limits.atOnce", "int32", &RepairPolicy{}},
		{`{"spec":{"window":7}}`, "spec.window", "in quotes", &RepairLimits{}},
		{`{"spec":{"hold":{"until":[]}}}`, "spec.hold.until", "", &SurgeRemediation{}},
		{`{"spec":{"template":{"spec":{"hold":{"until":"tomorrow"}}}}}`, "spec.template.spec.hold.until", "parsing time", &SurgeRemediationTemplate{}},
		{`{"status":{"startedAt":[]}}`, "status.startedAt", "", &Move{}},
		{`{"status":{"phase":"Running","conditions":{}}}`, "status.conditions", "object", &WorkflowRun{}},
	} {
		stored := strings.Replace(c.stored, "{", `{"metadata":{"name":"bad","namespace":"team","generation":3},`, 1)
		if err := json.Unmarshal([]byte(stored), c.o); err != nil {
			t.Errorf("Unmarshal(%s) = %v", c.stored, err)
			continue
		}
		wrong := c.o.Unread()
		if wrong == nil || wrong.Field != c.field || !strings.Contains(wrong.Problem, c.says) {
			t.Errorf("%s: Unread = %v", c.stored, wrong)
		}
		again, err := json.Marshal(c.o)
		if err != nil {
			t.Fatal(err)
		}
		var was, is map[string]any
		if json.Unmarshal([]byte(stored), &was) != nil || json.Unmarshal(again, &is) != nil {
			t.Fatal(stored)
		}
		for _, part := range []string{"spec", "status"} {
			if diff := cmp.Diff(was[part], is[part]); was[part] != nil && diff != "" {
				t.Errorf("%s is not encoded as it was:\n%s", part, diff)
			}
		}
	}
}

// TestUnreadableIsShort checks that the message is short for fields and values of any length.
func TestUnreadableIsShort(t *testing.T) {
	long := strings.Repeat("x", 100_000)
	for _, spec := range []string{
		`{"tasks":[{"name":"a","needs":[{"task":"b","` + long + `":1}]}]}`,
		`{"tasks":[{"name":"a","needs":{"` + long + `":1}}]}`,
		`{"deadline":"` + long + `"}`,
	} {
		w := &WorkflowRun{}
		if err := json.Unmarshal([]byte(`{"spec":`+spec+`}`), w); err != nil {
			t.Fatal(err)
		}
		if wrong := w.Unread(); wrong == nil || len(wrong.Field) > 2000 || len(wrong.Problem) > 2000 || wrong.Problem == "" {
			t.Errorf("%.60s: Unread = %.100v", spec, wrong)
		}
	}
}

// TestReadableParts checks that the rest of an object is decoded, and that an earlier problem is cleared.
func TestReadableParts(t *testing.T) {
	m := &Move{}
	read := func(spec, status string) {
		t.Helper()
		if err := json.Unmarshal([]byte(`{"metadata":{"name":"go"},"spec":`+spec+`,"status":`+status+`}`), m); err != nil {
			t.Fatal(err)
		}
	}
	read(`{"dryRun":1}`, `{"message":"as it was"}`)
	if m.Unreadable.Spec == nil || m.Unreadable.Status != nil || m.Status.Message != "as it was" || m.Name != "go" {
		t.Errorf("object with an unreadable spec = %+v", m)
	}
	read(`{"dryRun":true}`, `{"message":1}`)
	if m.Unreadable.Spec != nil || m.Unreadable.Status == nil || !m.Spec.DryRun || m.Status.Message != "" {
		t.Errorf("object with an unreadable status = %+v", m)
	}
	m.Status.Message = "again"
	if data, err := json.Marshal(m); err != nil || !strings.Contains(string(data), `"message":"again"`) {
		t.Errorf("Marshal = %s, error %v", data, err)
	}
	read(`{"dryRun":true}`, `{}`)
	if m.Unread() != nil {
		t.Errorf("Unread = %v, want nil", m.Unread())
	}
}

// TestOneOfAList decodes a list as clients do.
func TestOneOfAList(t *testing.T) {
	scheme := runtime.NewScheme()
	if err := AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	const list = `{"apiVersion":"scute.dev/v1alpha1","kind":"MoveList","metadata":{},"items":[
		{"metadata":{"name":"bad"},"spec":{"timeouts":{"create":"1d"}}},
		{"metadata":{"name":"good"},"spec":{"timeouts":{"create":"24h"}}}]}`
	o, _, err := serializer.NewCodecFactory(scheme).UniversalDeserializer().Decode([]byte(list), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	items := o.(*MoveList).Items //nolint:forcetypeassert // it would panic, which is as good
	if items[0].Name != "bad" || items[0].Unread() == nil || items[1].Unread() != nil || items[1].Spec.Timeouts.Create.Hours() != 24 {
		t.Errorf("items = %+v", items)
	}
}
