package api

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// unreadable returns specs that Go cannot decode, by kind, with the field that must be named.
func unreadable() map[string]struct{ spec, field string } {
	return map[string]struct{ spec, field string }{
		"Move":           {"{target: {kubeconfigSecretRef: {name: there}}, selection: {all: true}, timeouts: {create: 1d}}", "spec.timeouts.create"},
		"WorkflowRun":    {"{tasks: [{name: a, kind: Approve, needs: web}]}", "spec.tasks[0].needs"},
		"Pause":          {"{clusters: [a], timeouts: {resume: 1d}}", "spec.timeouts.resume"},
		"RepairPolicy":   {"{selector: {}, hold: 1d}", "spec.hold"},
		"RepairLimits":   {"{window: 1d}", "spec.window"},
		"BackupSchedule": {"{schedule: '@daily', timeout: 1d}", "spec.timeout"},
		// The specs of kinds without machines here: controllers read them, but do not act on them.
		"SurgeRemediation":         {"{hold: {until: []}}", ""},
		"SurgeRemediationTemplate": {"{template: {spec: {hold: {until: tomorrow}}}}", ""},
	}
}

// TestUnreadableObjects checks that unreadable objects, stored under an older schema, are reported in their own status
// and do not block others: neither when they are created, nor when the daemon restarts with the current schema.
func TestUnreadableObjects(t *testing.T) {
	ctx := harness.Deadline(t, 15*time.Minute)
	in := install(ctx, t)
	crds := definitions(t)
	serve(ctx, t, crds...)
	dir, err := in.NewLogDir()
	harness.Must(t, err)
	stop := daemon(ctx, t, in, dir)
	good(ctx, t, in, "before")

	for _, crd := range crds {
		relax(ctx, t, crd, true)
	}
	var bad []*unstructured.Unstructured
	for _, crd := range crds {
		bad = append(bad, spoiled(ctx, t, crd))
	}
	good(ctx, t, in, "meanwhile")
	reported(ctx, t, bad)
	diagnosed(ctx, t, in, bad)
	stop()

	for _, crd := range crds {
		relax(ctx, t, crd, false)
	}
	stop = daemon(ctx, t, in, dir)
	defer stop()
	good(ctx, t, in, "after")
	reported(ctx, t, bad)
	remove(ctx, t, bad...)
}

// installed is the installation of the first test that runs a daemon. All tests use the same API server.
var installed *scuted.Installation //nolint:gochecknoglobals // as bed

// install installs scute's permissions and creates the namespaces good and bad. It forgets the log of an earlier test.
func install(ctx context.Context, t *testing.T) *scuted.Installation {
	t.Helper()
	if installed != nil {
		harness.Must(t, installed.ForgetLog(ctx))
		return installed
	}
	programs, err := scuted.Build(ctx, os.Stderr)
	harness.Must(t, err)
	in, err := scuted.Install(ctx, bed.Side("one"), programs)
	harness.Must(t, err)
	for _, name := range []string{"good", "bad"} {
		harness.Must(t, client.IgnoreAlreadyExists(admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})))
	}
	installed = in
	return in
}

// daemon runs scuted, and returns a function that stops it.
func daemon(ctx context.Context, t *testing.T, in *scuted.Installation, dir string) (stop func()) {
	t.Helper()
	d := harness.Daemon(t, in, scuted.DaemonOptions{LogDir: dir})
	return func() {
		if err := d.Stop(context.WithoutCancel(ctx)); err != nil {
			t.Error(err)
		}
	}
}

// good creates a run in a namespace without bad objects, and waits until the daemon has started it.
func good(ctx context.Context, t *testing.T, in *scuted.Installation, name string) {
	t.Helper()
	w, err := scuted.NewWorkflowRun("good", name, "", "tasks: [{name: a, kind: Approve, with: {message: 'go on?'}}]")
	harness.Must(t, err)
	c, err := in.Client()
	harness.Must(t, err)
	harness.Must(t, c.Create(ctx, w))
	_, err = in.WaitWorkflowRun(ctx, "good", name, func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunPaused })
	harness.Must(t, err)
}

// relax serves a kind without a schema, as an older version might, or with the current one again.
func relax(ctx context.Context, t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, off bool) {
	t.Helper()
	now := &apiextensionsv1.CustomResourceDefinition{}
	harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(crd), now))
	before := now.DeepCopy()
	now.Spec.Versions[0].Schema = crd.Spec.Versions[0].Schema.DeepCopy()
	if off {
		anything := true
		open := schema{Type: "object", XPreserveUnknownFields: &anything}
		now.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"] = open
	}
	harness.Must(t, admin().Patch(ctx, now, client.MergeFrom(before)))
	wait(ctx, t, crd.Name+" has another schema", func() error {
		o := spoil(t, crd)
		call(o, "bad", "probe")
		err := client.IgnoreAlreadyExists(admin().Create(ctx, o, client.DryRunAll)) // the error is returned after validation
		if (err == nil) != off && (off || unreadable()[crd.Spec.Names.Kind].field != "") {
			return fmt.Errorf("relaxed %t, and an unreadable object is answered with: %w", off, err)
		}
		return nil
	})
}

func spoil(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	harness.Must(t, yaml.Unmarshal([]byte("spec: "+unreadable()[crd.Spec.Names.Kind].spec), &o.Object))
	o.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	o.SetKind(crd.Spec.Names.Kind)
	call(o, "bad", "bad")
	return o
}

func spoiled(ctx context.Context, t *testing.T, crd *apiextensionsv1.CustomResourceDefinition) *unstructured.Unstructured {
	t.Helper()
	o := spoil(t, crd)
	harness.Must(t, admin().Create(ctx, o))
	return o
}

// diagnosed checks that doctor names each bad object.
func diagnosed(ctx context.Context, t *testing.T, in *scuted.Installation, bad []*unstructured.Unstructured) {
	t.Helper()
	out, err := in.Scutectl(ctx, "doctor").Output()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("doctor = %v, want exit status 1", err)
	}
	for _, o := range bad {
		line := fmt.Sprintf("problem  resources      %s %s: %s", o.GetKind(), strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/"), unreadable()[o.GetKind()].field)
		if !strings.Contains(string(out), line) {
			t.Errorf("doctor: output lacks %q:\n%s", line, out)
		}
	}
}

// reported waits until the conditions of each bad object name the unreadable field and report a stall.
func reported(ctx context.Context, t *testing.T, bad []*unstructured.Unstructured) {
	t.Helper()
	for _, o := range bad {
		field := unreadable()[o.GetKind()].field
		if field == "" {
			continue
		}
		wait(ctx, t, o.GetKind()+" is reported", func() error {
			now := o.DeepCopy()
			if err := admin().Get(ctx, client.ObjectKeyFromObject(o), now); err != nil {
				return err
			}
			conditions, _, _ := unstructured.NestedSlice(now.Object, "status", "conditions")
			said := fmt.Sprint(conditions)
			if !strings.Contains(said, v1alpha1.ConditionReadable) || !strings.Contains(said, field) || !strings.Contains(said, v1alpha1.ConditionStalled) {
				return fmt.Errorf("its conditions are %s", said)
			}
			return nil
		})
	}
}
