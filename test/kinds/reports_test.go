package kinds

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/workflow/task"
	"scute.dev/workflow/tasks/apply"
	"scute.dev/workflow/tasks/deletion"
	"scute.dev/workflow/tasks/diagnose"
	"scute.dev/workflow/tasks/wait"
)

// TestKindsAreSpelled checks that each task that names objects refuses a kind in lower case, as users of kubectl write
// it. Otherwise rules for special kinds would not apply, and a Secret would be in the log.
func TestKindsAreSpelled(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "spelled")
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}, StringData: map[string]string{"password": "hunter2hunter2"}}))
	for name, s := range map[string]*step{
		"wait":     {kind: &wait.Kind{Clusters: clusters(true)}, with: `{"object": {"apiVersion": "apps/v1", "kind": "deployment", "name": "d"}, "for": "ready"}`},
		"gone":     {kind: &wait.Kind{Clusters: clusters(true)}, with: `{"object": {"apiVersion": "v1", "kind": "secret", "name": "s"}, "for": "gone"}`},
		"selector": {kind: &wait.Kind{Clusters: clusters(true)}, with: `{"selector": {"apiVersion": "v1", "kind": "secret", "labelSelector": "a=b"}, "for": "ready"}`},
		"delete":   {kind: &deletion.Kind{Clusters: clusters(true)}, with: `{"objects": [{"apiVersion": "v1", "kind": "secret", "name": "s"}]}`},
		"diagnose": {kind: &diagnose.Kind{Clusters: clusters(true)}, with: `{"objects": [{"apiVersion": "v1", "kind": "secret", "name": "s"}]}`},
		"apply":    {kind: &apply.Kind{Clusters: clusters(true)}, with: `{"manifests": [{"apiVersion": "v1", "kind": "configmap", "metadata": {"name": "s"}}]}`},
	} {
		t.Run(name, func(t *testing.T) {
			s.t, s.namespace, s.name, s.dir = t, ns, name, t.TempDir()
			err := s.run(ctx)
			if name != "diagnose" && !task.IsFinal(err) { // Diagnose collects everything else
				t.Errorf("%v, want a final error", err)
			}
			mentions(t, err, `kind "`, `is spelled "`)
			if strings.Contains(string(s.undo), "hunter2") {
				t.Errorf("recorded the secret: %s", s.undo)
			}
		})
	}
	if get(ctx, t, "v1", "Secret", ns, "s") == nil {
		t.Error("the Secret was deleted")
	}
}

// TestRollbackOfAllocated checks that values that the API server allocates when an object is written, but not in a dry
// run, are rolled back too. A task that was interrupted before it recorded them reports what it cannot restore.
func TestRollbackOfAllocated(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "allocated")
	const with = `{"force": true, "wait": false, "manifests": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": %q},
		"spec": {"type": "NodePort", "selector": {"a": "c"}, "ports": [{"name": "http", "port": 80}, {"name": "https", "port": 443}]}}]}`
	service := func(name string) *corev1.Service {
		s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: name}}
		s.Spec.Selector, s.Spec.Ports = map[string]string{"a": "b"}, []corev1.ServicePort{{Name: "http", Port: 80}}
		harness.Must(t, admin().Create(ctx, s))
		return s
	}
	spec := func(name string) string {
		var s corev1.Service
		harness.Must(t, admin().Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &s))
		data, err := json.Marshal(s.Spec)
		harness.Must(t, err)
		return string(data)
	}
	before := service("whole")
	want := spec(before.Name)
	s := applyStep(t, ns, fmt.Sprintf(with, "whole"))
	harness.Must(t, s.run(ctx))
	harness.Must(t, s.takeBack(ctx))
	if have := spec(before.Name); have != want {
		t.Errorf("spec after the rollback =\n%s\nwant\n%s", have, want)
	}

	service("cut")
	s = applyStep(t, ns, fmt.Sprintf(with, "cut"))
	var planned json.RawMessage
	s.recorded = func() {
		if planned == nil {
			planned = s.undo
		}
	}
	harness.Must(t, s.run(ctx))
	s.undo = planned
	isFinal(t, s.takeBack(ctx), "Service "+ns+"/cut cannot be restored in spec.ports")
}

// TestMistyped checks that a manifest whose types do not match the schema is refused with the field, and a Secret
// without its content.
func TestMistyped(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "mistyped")
	for name, with := range map[string]string{
		"a text for a number": `{"manifests": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replicas": "many"}}]}`,
		"a list twice":        `{"manifests": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "d"}, "spec": {"ports": [{"port": 80}, {"port": 80}]}}]}`,
		"an unknown field":    `{"manifests": [{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"}, "spec": {"replica": 1}}]}`,
	} {
		t.Run(name, func(t *testing.T) {
			isFinal(t, applyStep(t, ns, with).run(ctx), "spec.")
		})
	}
	err := applyStep(t, ns, `{"from": {"configMapRef": {"name": "m"}}}`).run(ctx)
	if task.IsFinal(err) {
		t.Errorf("the error about a source that may be created later is final: %v", err)
	}
	harness.Must(t, admin().Create(ctx, configMap(ns, "m", map[string]string{"a": `{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"password": 123454321}}`})))
	err = applyStep(t, ns, `{"from": {"configMapRef": {"name": "m"}}}`).run(ctx)
	isFinal(t, err, "rejects Secret "+ns+"/s as invalid")
	if strings.Contains(err.Error(), "123454321") {
		t.Errorf("the error contains the content: %v", err)
	}
}

// TestJobsAreWaitedFor checks that a Job is ready when it is complete. After that it may be deleted, and is not run
// again on a resume.
func TestJobsAreWaitedFor(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "jobs-applied")
	const with = `{"manifests": [{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": %q},
		"spec": {%s "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}}}]}`
	s := applyStep(t, ns, fmt.Sprintf(with, "done", ""))
	ended := make(chan error, 1)
	go func() { ended <- s.run(ctx) }()
	s.saw(ctx, "Job.batch "+ns+"/done is not complete")
	endJob(ctx, t, ns, "done", "Complete")
	harness.Must(t, <-ended)
	harness.Must(t, admin().Delete(ctx, &jobs(ctx, t, ns, 1)[0], client.PropagationPolicy(metav1.DeletePropagationBackground)))
	jobs(ctx, t, ns, 0)
	if reason, err := s.kind.(task.Verifier).Verify(ctx, s.call()); err != nil || reason != "" {
		t.Errorf("Verify of a complete Job that was deleted = %q, %v, want no reason", reason, err)
	}
	isFinal(t, applyStep(t, ns, fmt.Sprintf(with, "short", `"ttlSecondsAfterFinished": 5,`)).run(ctx), "Job.batch "+ns+"/short: spec.ttlSecondsAfterFinished is less than 60")

	makeJob(ctx, t, ns, "bad")
	w := &step{t: t, kind: &wait.Kind{Clusters: clusters(true)}, namespace: ns, name: "wait", with: `{"object": {"apiVersion": "batch/v1", "kind": "Job", "name": "bad"}, "for": {"condition": {"type": "Complete"}}}`}
	go func() { ended <- w.run(ctx) }()
	w.saw(ctx, "has no condition Complete")
	endJob(ctx, t, ns, "bad", "Failed")
	mentions(t, <-ended, "it has ended (Failed)")
	w.with = strings.Replace(w.with, "Complete", "Failed", 1)
	harness.Must(t, w.run(ctx))
}

// TestApplyOfParts checks that an Apply reports the fields of an earlier one that it removes.
func TestApplyOfParts(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "parts")
	const with = `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {%q: "1"}}]}`
	harness.Must(t, applyStep(t, ns, fmt.Sprintf(with, "one")).run(ctx))
	s := applyStep(t, ns, fmt.Sprintf(with, "two"))
	s.name = "second"
	harness.Must(t, s.run(ctx))
	s.saw(ctx, "ConfigMap "+ns+"/a loses data.one")
	if !strings.Contains(string(s.output), `"removed":["data.one"]`) {
		t.Errorf("output = %s, want the removed field", s.output)
	}
}

// TestChangedMeanwhile checks that a change that another client makes between the read and the write does not count as
// the task's own, and is kept by the undo.
func TestChangedMeanwhile(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "changed-meanwhile")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "s"}}
	service.Spec.Ports, service.Spec.Selector = []corev1.ServicePort{{Port: 80}}, map[string]string{"a": "b"}
	harness.Must(t, admin().Create(ctx, service))
	s := applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "labels": {"x": "y"}}}], "wait": false}`)
	first := true
	s.recorded = func() {
		if first {
			first = false
			harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(service), service))
			service.Spec.Selector = map[string]string{"a": "green"}
			harness.Must(t, admin().Update(ctx, service))
		}
	}
	harness.Must(t, s.run(ctx))
	harness.Must(t, s.takeBack(ctx))
	harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(service), service))
	if service.Spec.Selector["a"] != "green" || service.Labels["x"] != "" {
		t.Errorf("selector %v, labels %v; want the foreign selector and no label", service.Spec.Selector, service.Labels)
	}
}

// TestDefinitionAndObject checks one Apply that changes a definition and an object with its new field.
func TestDefinitionAndObject(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "definition-and-object")
	definition := func(fields string) string {
		return fmt.Sprintf(`{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "toys.reports.example.com"},
			"spec": {"group": "reports.example.com", "scope": "Namespaced", "names": {"kind": "Toy", "plural": "toys", "singular": "toy", "listKind": "ToyList"},
			"versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": {"type": "object", "properties": {%s}}}}}}]}}`, fields)
	}
	toy := func(field string) string {
		return fmt.Sprintf(`{"apiVersion": "reports.example.com/v1", "kind": "Toy", "metadata": {"name": "one"}, "spec": {%q: "x"}}`, field)
	}
	harness.Must(t, applyStep(t, ns, `{"manifests": [`+definition(`"a": {"type": "string"}`)+`, `+toy("a")+`]}`).run(ctx))
	s := applyStep(t, ns, `{"manifests": [`+definition(`"a": {"type": "string"}, "b": {"type": "string"}`)+`, `+toy("b")+`]}`)
	s.name = "second"
	harness.Must(t, s.run(ctx))
	if b, _, _ := unstructured.NestedString(get(ctx, t, "reports.example.com/v1", "Toy", ns, "one").Object, "spec", "b"); b != "x" {
		t.Errorf("spec.b = %q, want x", b)
	}
}
