package crd

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

func TestValidate(t *testing.T) {
	for name, c := range map[string]struct{ kind, spec, field string }{
		"good":              {"WorkflowRun", "{tasks: [{name: a, kind: Approve}]}", ""},
		"null":              {"WorkflowRun", "{tasks: [{name: a, kind: Approve, timeout: null}]}", ""},
		"of another type":   {"WorkflowRun", "{tasks: [{name: a, kind: Approve, always: 1}]}", "spec.tasks[0].always"},
		"missing":           {"WorkflowRun", "{tasks: [{name: a}]}", "spec.tasks[0].kind"},
		"of no pattern":     {"WorkflowRun", "{deadline: 1d, tasks: [{name: a, kind: Approve}]}", "spec.deadline"},
		"twice in a list":   {"WorkflowRun", "{policies: [{kind: a}, {kind: a}], tasks: [{name: a, kind: Approve}]}", "spec.policies[1]"},
		"against a rule":    {"WorkflowRun", "{workflow: {name: workload-create}, tasks: [{name: a, kind: Approve}]}", "spec"},
		"by its default":    {"Move", "{target: {kubeconfigSecretRef: {name: a}}, selection: {all: true}, timeouts: {}}", ""},
		"no such selection": {"Move", "{target: {kubeconfigSecretRef: {name: a}}, selection: {}}", "spec.selection"},
		"a list for a time": {"SurgeRemediation", "{hold: {until: []}}", "spec.hold.until"},
		"many expressions":  {"RepairPolicy", "{selector: {matchExpressions: [" + strings.Repeat("{key: a, operator: Exists},", 33) + "]}}", "spec.selector.matchExpressions"},
		"no selector":       {"RepairPolicy", "{}", "spec.selector"},
		"condition status":  {"RepairPolicy", "{selector: {}, notices: [{type: NodeCondition, key: Maintenance, value: 'true'}]}", "spec.notices[0].value"},
		"two values":        {"RepairPolicy", "{selector: {}, notices: [{type: NodeAnnotation, key: a, value: b, leadTime: 1h}]}", "spec.notices[0].value"},
		"lead time":         {"RepairPolicy", "{selector: {}, notices: [{type: NodeTaint, key: a, leadTime: 1h}]}", "spec.notices[0].leadTime"},
		"another name":      {"RepairLimits", "{}", "metadata"},
		"many values":       {"RepairPolicy", "{selector: {matchExpressions: [{key: a, operator: In, values: [" + strings.Repeat("x,", 65) + "]}]}}", "spec.selector.matchExpressions"},
	} {
		v, err := New(c.kind)
		if err != nil {
			t.Fatal(err)
		}
		var object map[string]any
		if err := yaml.Unmarshal([]byte("{apiVersion: scute.dev/v1alpha1, kind: "+c.kind+", metadata: {name: a}, spec: "+c.spec+"}"), &object); err != nil {
			t.Fatal(err)
		}
		got := ""
		if errs := v.Validate(t.Context(), object); len(errs) > 0 {
			got = errs[0].Field
		}
		if got != c.field {
			t.Errorf("%s: field %q, want %q", name, got, c.field)
		}
	}
}

// TestSpecIsRequired checks that an object without a spec is rejected: it would select everything, or nothing.
func TestSpecIsRequired(t *testing.T) {
	for _, kind := range []string{"BackupSchedule", "Move", "Pause", "RepairPolicy", "SurgeRemediationTemplate", "WorkflowRun"} {
		v, err := New(kind)
		if err != nil {
			t.Fatal(err)
		}
		errs := v.Validate(t.Context(), map[string]any{"apiVersion": "scute.dev/v1alpha1", "kind": kind, "metadata": map[string]any{"name": "a"}})
		if len(errs) != 1 || errs[0].Field != "spec" {
			t.Errorf("%s: errors %v, want one for spec", kind, errs)
		}
	}
}

func TestUnknown(t *testing.T) {
	v, err := New("RepairPolicy")
	if err != nil {
		t.Fatal(err)
	}
	object := map[string]any{"spec": map[string]any{"selector": map[string]any{}, "limits": map[string]any{"coolDown": "1m", "cooldown": "1m"}}}
	if got := v.UnknownFields(object); len(got) != 1 || got[0] != "spec.limits.coolDown" {
		t.Errorf("Unknown = %q, want spec.limits.coolDown", got)
	}
}
