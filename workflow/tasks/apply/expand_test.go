package apply_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/workflow/tasks/apply"
)

const set = `
apiVersion: v1
kind: Namespace
metadata: {name: web}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: web}
---
apiVersion: v1
kind: ConfigMap
metadata:
  name: app
  namespace: web
  annotations:
    scute.dev/needs: "configmap/settings, !configmap/fallback?@10m, before"
    scute.dev/failure-policy: Pause
    scute.dev/timeout: 90s
    scute.dev/retry: 3,2s,2,30s,recreate
---
apiVersion: v1
kind: ConfigMap
metadata: {name: fallback, namespace: web, annotations: {scute.dev/retry: '{"max": 2, "delay": "1s"}'}}
`

func parse(t *testing.T, text string) []*unstructured.Unstructured {
	t.Helper()
	raw, err := json.Marshal(text)
	if err != nil {
		t.Fatal(err)
	}
	var m apply.Manifests
	if err := m.UnmarshalJSON(raw); err != nil {
		t.Fatal(err)
	}
	objects, err := m.Objects()
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func base(with string) v1alpha1.TaskSpec {
	return v1alpha1.TaskSpec{
		StepSpec: v1alpha1.StepSpec{Name: "app", Kind: "Apply", With: &apiextensionsv1.JSON{Raw: []byte(with)}, Timeout: &v1alpha1.Duration{Duration: time.Minute}},
		Needs:    []v1alpha1.Need{{Task: "first"}},
	}
}

func TestExpand(t *testing.T) {
	parts, problems := apply.Expand(base(`{"from": {"secretRef": {"name": "set"}}, "expand": true, "force": true}`), parse(t, set))
	if len(problems) > 0 {
		t.Fatal(problems)
	}
	var names []string
	for _, p := range parts {
		names = append(names, p.Name)
	}
	if diff := cmp.Diff([]string{"app/namespace-web", "app/configmap-settings", "app/configmap-app", "app/configmap-fallback"}, names); diff != "" {
		t.Fatal(diff)
	}
	success := v1alpha1.OnSuccess
	want := v1alpha1.TaskSpec{
		StepSpec: v1alpha1.StepSpec{
			Name: "app/configmap-app", Kind: "Apply", Timeout: &v1alpha1.Duration{Duration: 90 * time.Second},
			Retry: &v1alpha1.Retry{
				Max: 3, Delay: &v1alpha1.Duration{Duration: 2 * time.Second}, Factor: 2, MaxDelay: &v1alpha1.Duration{Duration: 30 * time.Second}, Recreate: true,
			},
		},
		FailurePolicy: v1alpha1.FailurePause,
		Needs: []v1alpha1.Need{
			{Task: "first"},
			{Task: "app/configmap-settings", On: success},
			{Task: "app/configmap-fallback", On: v1alpha1.OnFailure, Optional: true, Timeout: &v1alpha1.Duration{Duration: 10 * time.Minute}},
			{Task: "before", On: success},
			{Task: "app/namespace-web", On: success},
		},
	}
	got := parts[2]
	with := string(got.With.Raw)
	got.With = nil
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if strings.Contains(with, "expand") || !strings.Contains(with, `"only":[{"apiVersion":"v1","kind":"ConfigMap","namespace":"web","name":"app"}]`) || !strings.Contains(with, `"force":true`) {
		t.Errorf("with = %s", with)
	}
	if r := parts[3].Retry; r == nil || r.Max != 2 || r.Delay.Duration != time.Second {
		t.Errorf("retry = %v", r)
	}
	inline, problems := apply.Expand(base(`{"manifests": "...", "expand": true}`), parse(t, set))
	if len(problems) > 0 || !strings.Contains(string(inline[1].With.Raw), `"manifests":[{"apiVersion":"v1","kind":"ConfigMap"`) {
		t.Errorf("problems %v, with %s", problems, inline[1].With.Raw)
	}
}

func TestExpandRefuses(t *testing.T) {
	one := parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {scute.dev/retry: 'x', scute.dev/timeout: '-1s', scute.dev/needs: 'b@soon'}}}")
	_, problems := apply.Expand(base(`{"files": ["a"]}`), one)
	if len(problems) != 3 {
		t.Errorf("problems = %v, want 3", problems)
	}
	for _, wrong := range []string{
		"failure-policy: Nonsense", "retry: '-1'", "retry: '2000'", "retry: '3,1s,0.5'", "retry: '3,1s,NaN'", "retry: '3,-1s'", "retry: '{\"max\": 1001}'", "needs: 'b@-1m'", "needs: 'b@0s'",
	} {
		_, problems = apply.Expand(base(`{"files": ["a"]}`), parse(t, "{apiVersion: v1, kind: ConfigMap, metadata: {name: a, annotations: {scute.dev/"+wrong+"}}}"))
		if len(problems) != 1 {
			t.Errorf("%s: problems = %v, want 1", wrong, problems)
		}
	}
	twice := append(parse(t, set), parse(t, set)[1])
	if _, problems = apply.Expand(base(`{"files": ["a"]}`), twice); len(problems) != 2 {
		t.Errorf("problems = %v, want 2", problems)
	}
	hooked := base(`{"files": ["a"]}`)
	hooked.Before = []v1alpha1.HookSpec{{}}
	if _, problems = apply.Expand(hooked, parse(t, set)); len(problems) != 1 || problems[0].Field != "before" {
		t.Errorf("problems = %v, want one about before", problems)
	}
	namesakes, problems := apply.Expand(base(`{"files": ["a"]}`), parse(t, `
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: x}}
---
{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: z}}
`))
	if len(problems) > 0 || namesakes[0].Name != "app/configmap-x-a" || namesakes[1].Name != "app/configmap-z-a" {
		t.Errorf("problems %v, parts %v", problems, namesakes)
	}
}
