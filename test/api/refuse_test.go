package api

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
)

// bases returns the simplest objects of a kind. A kind with mutually exclusive fields has several. The wrong values of
// a field are tried in the first one that accepts the field.
func bases(kind string) []string {
	switch kind {
	case "Move":
		return []string{
			"spec: {target: {kubeconfigSecretRef: {name: there}}, selection: {all: true}}",
			"spec: {target: {kubeconfigSecretRef: {name: there}}, selection: {clusters: [a]}}",
		}
	case "WorkflowRun":
		return []string{
			`spec:
  policies: [{kind: Approve, timeout: 1h}]
  hooks:
    pre: [{name: a, kind: Approve, with: {message: 'go on?'}}]
    post: [{name: a, kind: Approve, with: {message: 'go on?'}}]
    onFailure: [{name: a, kind: Wait, with: {object: {apiVersion: v1, kind: ConfigMap, name: a}, for: gone}}]
  tasks:
  - name: b
    kind: Approve
    with: {message: 'go on?'}
    needs: [{task: a}]
    before: [{name: a, kind: Approve, with: {message: 'go on?'}}]
    after: [{name: a, kind: Approve, with: {message: 'go on?'}}]
  - {name: a, kind: Approve, with: {message: 'go on?'}}`,
			"spec: {workflow: {name: workload-create}}",
		}
	case "Pause":
		return []string{"spec: {clusters: [a], timeouts: {acknowledge: 1s}, selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}"}
	case "BackupSchedule":
		const to = "schedule: '@daily', encryption: {plaintext: true}, destination: {s3: {endpoint: 'https://s3.example.com', bucket: abc, credentialsSecretRef: {name: a}}}"
		return []string{
			"spec: {clusters: {all: true}, " + to + "}",
			"spec: {clusters: {names: [a]}, " + to + "}",
			"spec: {clusters: {selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}, " + to + "}",
			"spec: {clusters: {all: true}, schedule: '@daily', encryption: {recipients: [age1a]}, destination: {volume: {}}}",
		}
	case "RepairPolicy":
		return []string{
			"spec: {selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}",
			"spec: {workers: true, selector: {matchExpressions: [{key: a, operator: In, values: [b]}]}}",
		}
	case "RepairLimits", "SurgeRemediation", "SurgeRemediationTemplate":
		return []string{"spec: {}"}
	default:
		return nil
	}
}

// trial is an object with a wrong value.
type trial struct {
	field
	what   string
	object *unstructured.Unstructured
	// without is the object without the field, or nil if the field is required.
	without *unstructured.Unstructured
	value   any
	status  bool // the value is in the status
}

func (t *trial) String() string {
	return fmt.Sprintf("%s %s: %s", t.object.GetKind(), t.field, t.what)
}

// trials returns all wrong values of all fields of a kind. Each field is first tried with a valid value, so that a
// refusal is caused by the wrong value.
func trials(ctx context.Context, t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition) []trial {
	t.Helper()
	root := crd.Spec.Versions[0].Schema.OpenAPIV3Schema
	var all []trial
	for _, part := range []string{"spec", "status"} {
		s, ok := root.Properties[part]
		if !ok {
			continue
		}
		for _, f := range below(field{[]string{part}, &s, false}) {
			base := baseFor(ctx, t, c, crd, f)
			for what, v := range wrong(f) {
				wrong := trial{field: f, what: what, object: with(base, root, f.path, v), value: v, status: part == "status"}
				if v == nil && !f.required && f.path[len(f.path)-1] != item {
					wrong.without = with(base, root, f.path, absent)
				}
				all = append(all, wrong)
			}
		}
	}
	return all
}

// with returns the object with another value at a path.
func with(base *unstructured.Unstructured, root *schema, path []string, v any) *unstructured.Unstructured {
	o := base.DeepCopy()
	o.Object, _ = place(base.Object, root, path, v).(map[string]any)
	return o
}

// baseFor returns the first base that accepts a valid value of a field.
func baseFor(ctx context.Context, t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, f field) *unstructured.Unstructured {
	t.Helper()
	var errs []error
	for i := range bases(crd.Spec.Names.Kind) {
		base := object(ctx, t, c, crd, i)
		_, err := try(ctx, c, with(base, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, f.path, kept), f.path[0] == "status")
		if err == nil {
			return base
		}
		errs = append(errs, err)
	}
	t.Fatalf("%s %s: a valid value was refused: %v", crd.Spec.Names.Kind, f, errors.Join(errs...))
	return nil
}

// valued returns a base without a name.
func valued(t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, i int) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	harness.Must(t, yaml.Unmarshal([]byte(bases(crd.Spec.Names.Kind)[i]), &o.Object))
	o.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	o.SetKind(crd.Spec.Names.Kind)
	return o
}

// object returns a base that exists in the cluster.
func object(ctx context.Context, t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, i int) *unstructured.Unstructured {
	t.Helper()
	o := valued(t, crd, i)
	call(o, metav1.NamespaceDefault, fmt.Sprintf("base-%d", i))
	err := c.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		err = c.Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	harness.Must(t, err)
	return o
}

// try sends an object to the API server in a dry run, and returns the stored form.
func try(ctx context.Context, c client.Client, o *unstructured.Unstructured, status bool) (*unstructured.Unstructured, error) {
	o = o.DeepCopy()
	if status {
		return o, c.Status().Update(ctx, o, client.DryRunAll)
	}
	if single(o.GetKind()) {
		return o, c.Update(ctx, o, client.DryRunAll)
	}
	o.SetName("trial")
	o.SetResourceVersion("")
	return o, c.Create(ctx, o, client.DryRunAll)
}

// single reports whether a kind has a single cluster-scoped object with a fixed name.
func single(kind string) bool { return kind == "RepairLimits" }

// call sets the name and namespace of an object, unless its kind fixes them.
func call(o *unstructured.Unstructured, namespace, name string) {
	if single(o.GetKind()) {
		namespace, name = "", v1alpha1.RepairLimitsName
	}
	o.SetNamespace(namespace)
	o.SetName(name)
}

// names reports whether an API error names the field: with its path, or with a parent's path and the field in the
// message.
func names(err error, f field) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) || status.Status().Details == nil {
		return false
	}
	for _, cause := range status.Status().Details.Causes {
		if strings.HasPrefix(cause.Field, f.String()) || strings.HasPrefix(f.String(), cause.Field) && strings.Contains(cause.Message, f.leaf()) {
			return true
		}
	}
	return false
}

// TestWrongValues checks that each wrong value of each field of each kind is refused with the field's name. For a value
// that is accepted, the table describes the result, which is checked too, while good objects of another namespace are
// processed.
func TestWrongValues(t *testing.T) {
	ctx := harness.Deadline(t, 20*time.Minute)
	crds, rules := definitions(t), taken()
	serve(ctx, t, crds...)
	var all []trial
	for _, crd := range crds {
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) { all = append(all, tried(ctx, t, crd, rules)...) })
	}
	for _, r := range rules {
		if !r.used {
			t.Errorf("the rule for %s %s %s (%s) matches no value: remove it", r.kind, r.field, r.what, r.why)
		}
	}
	if t.Failed() {
		return
	}
	in := install(ctx, t)
	dir, err := in.NewLogDir()
	harness.Must(t, err)
	stop := daemon(ctx, t, in, dir)
	defer stop()
	good(ctx, t, in, "before-wrong-values")
	t.Run("reported", func(t *testing.T) { areReported(ctx, t, of(toReport, all, rules)) })
	good(ctx, t, in, "between-wrong-values")
	t.Run("rewritten", func(t *testing.T) { areRewritten(ctx, t, crds, of(toRewrite, all, rules)) })
	good(ctx, t, in, "after-wrong-values")
}

// tried returns the wrong values of a kind that the API server accepts.
func tried(ctx context.Context, t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, rules []*rule) (accepted []trial) {
	t.Helper()
	all := trials(ctx, t, admin(), crd)
	errs := answers(ctx, t, all)
	for i := range all {
		wrong := &all[i]
		if err := errs[i]; err != nil {
			if !names(err, wrong.field) {
				t.Errorf("%s: the error does not name the field: %v", wrong, err)
			}
			continue
		}
		accepted = append(accepted, *wrong)
		switch end, known := wrong.end(rules); {
		case !known:
			t.Errorf("%s: it is accepted: refuse it in the schema, or describe its result in taken", wrong)
		case end == asLeftOut:
			wrong.isLeftOut(ctx, t)
		}
	}
	t.Logf("%d wrong values, %d refused by the field's name; of the others, %d are as if left out, %d right, %d reported, %d rewritten", len(all), len(all)-len(accepted),
		len(of(asLeftOut, accepted, rules)), len(of(right, accepted, rules)), len(of(toReport, accepted, rules)), len(of(toRewrite, accepted, rules)))
	return accepted
}

// answers returns the API server's error for each trial.
func answers(ctx context.Context, t *testing.T, all []trial) []error {
	t.Helper()
	errs := make([]error, len(all))
	var group errgroup.Group
	group.SetLimit(16)
	for i := range all {
		group.Go(func() error {
			_, errs[i] = try(ctx, admin(), all[i].object, all[i].status)
			return nil
		})
	}
	harness.Must(t, group.Wait())
	return errs
}
