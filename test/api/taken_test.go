package api

import (
	"context"
	"encoding/json"
	"regexp"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
)

// ending is the result of a wrong value that the API server accepts.
type ending int

const (
	// asLeftOut means that it is read as if the field were missing.
	asLeftOut ending = iota
	// right means that the value is wrong only in other fields.
	right
	// toReport means that the daemon reports the error in the object's status, with the field's name.
	toReport
	// toRewrite means that the daemon restores the status.
	toRewrite
)

// rule describes the result of wrong values in some fields.
type rule struct {
	kind, field, what *regexp.Regexp
	end               ending
	why               string

	used bool
}

// taken returns rules for all wrong values that the API server accepts, except null in an optional field. The first
// matching rule applies.
func taken() []*rule {
	const (
		hook   = `^spec\.(hooks\.\w+|workflow\.hooks\.\w+\.Example\.example\.org|tasks\[0\]\.(before|after))\[0\]\.`
		labels = `^spec\.selector\.matchLabels`
		name   = `"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"$`
	)
	fits := func(kind, field, what string, end ending, why string) *rule {
		return &rule{kind: regexp.MustCompile(kind), field: regexp.MustCompile(field), what: regexp.MustCompile(what), end: end, why: why}
	}
	return []*rule{
		fits("WorkflowRun", `^spec\..*\.retry\.max$`, "^0$", right, "no further attempt: the default"),
		fits("WorkflowRun", hook+`name$`, `^"`, right, "the name of a hook is any text"),
		fits("WorkflowRun", `^spec\..*\.(name|kind)$`, `^"`, toReport, "the program knows which there are"),
		fits("WorkflowRun", `^spec\..*\.(with|undo)$`, `^an? `, toReport, "each kind of task has its own inputs"),
		fits("WorkflowRun", `^spec\.workflow\.params$`, `^an? `, toReport, "each named workflow has its own parameters"),
		fits("WorkflowRun", `\.needs\[0\](\.task)?$`, `^(a|")`, toReport, "a structural schema has no item of two types"),
		fits("Pause", `^spec\.reason$`, `^"`, right, "a text for people"),
		fits("Pause|RepairPolicy", labels+"$", "^the key "+name, right, "the key of a label"),
		fits("Pause|RepairPolicy", labels+`\.|\.values\[0\]$`, `^""$`, right, "the value of a label may be empty"),
		fits("Pause|RepairPolicy", `^spec\.selector\.`, `^("|the key )`, toReport, "the type is Kubernetes' own, without bounds"),
		fits("BackupSchedule", `^spec\.clusters\.selector\.matchLabels$`, "^the key "+name, right, "the key of a label"),
		fits("BackupSchedule", `^spec\.clusters\.selector\.(matchLabels\..*|.*\.values\[0\])$`, `^""$`, right, "the value of a label may be empty"),
		fits("BackupSchedule", `^spec\.clusters\.selector\.`, `^("|the key )`, toReport, "the type is Kubernetes' own, without bounds"),
		fits("BackupSchedule", `^spec\.destination\.(s3\.prefix|volume\.folder)$`, `^""$`, right, "empty is the default"),
		fits("RepairPolicy|RepairLimits", `\.pauseRequests\[0\]$`, `^"`, right, "a text for people"),
		fits("RepairPolicy", `\.notices\[0\]\.value$`, `^"`, right, "the value of an annotation is any text"),
		fits("RepairPolicy", `\.failedWhen\[0\]\.value$`, `^"`, right, "what an object has in the field is any text"),
		fits("SurgeRemediation", `\.hold\.reason$`, `^"`, right, "a text for people"),
		fits("", "^status", "", toRewrite, "the daemon writes it from the log"),
	}
}

// end is what becomes of a value that the API server takes; false when it must not take it.
func (t *trial) end(rules []*rule) (ending, bool) {
	if t.without != nil {
		return asLeftOut, true
	}
	for _, r := range rules {
		if r.kind.MatchString(t.object.GetKind()) && r.field.MatchString(t.field.String()) && r.what.MatchString(t.what) {
			r.used = true
			return r.end, true
		}
	}
	return 0, false
}

// isLeftOut checks that a null is read as if the field were not there.
func (t *trial) isLeftOut(ctx context.Context, test *testing.T) {
	test.Helper()
	var read [2]any
	for i, o := range []*unstructured.Unstructured{t.object, t.without} {
		stored, err := try(ctx, admin(), o, t.status)
		harness.Must(test, err)
		read[i] = understood(test, stored)[t.path[0]]
	}
	if diff := cmp.Diff(read[1], read[0]); diff != "" {
		test.Errorf("%s: it is not read as if it were left out (-left out +null):\n%s", t, diff)
	}
}

// understood is an object as scute reads it.
func understood(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	scheme := runtime.NewScheme()
	harness.Must(t, v1alpha1.AddToScheme(scheme))
	into, err := scheme.New(o.GroupVersionKind())
	harness.Must(t, err)
	data, err := o.MarshalJSON()
	harness.Must(t, err)
	harness.Must(t, json.Unmarshal(data, into))
	data, err = json.Marshal(into)
	harness.Must(t, err)
	fields, ok := decoded(data).(map[string]any)
	if !ok {
		t.Fatalf("%s is no object: %s", o.GetKind(), data)
	}
	return fields
}
