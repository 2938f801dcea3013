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
)

// bases are the simplest objects of each kind. A kind whose fields exclude each other has several: of them the first that
// takes a field is the one that the field's wrong values are put into.
func bases(kind string) []string {
	switch kind {
	case "Move":
		return []string{
			"spec: {target: {kubeconfigSecretRef: {name: there}}, selection: {all: true}}",
			"spec: {target: {kubeconfigSecretRef: {name: there}}, selection: {clusters: [a]}}",
		}
	case "Workflow":
		return []string{
			"spec: {tasks: [{name: a, kind: Approve, with: {message: 'go on?'}}]}",
			"spec: {workflow: {name: workload-create}}",
		}
	case "RepairPolicy":
		return []string{"spec: {selector: {}}"}
	case "SurgeRemediation", "SurgeRemediationTemplate":
		return []string{"spec: {}"}
	default:
		return nil
	}
}

// trial is a wrong value in an object.
type trial struct {
	field
	what   string
	object *unstructured.Unstructured
	status bool // it is in the status
}

func (t *trial) String() string {
	return fmt.Sprintf("%s %s: %s", t.object.GetKind(), t.field, t.what)
}

// trials are all wrong values of all fields of a kind. Each field is tried with a valid value first: what is refused then
// is the wrong value, and nothing else.
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
				o := base.DeepCopy()
				o.Object, _ = place(base.Object, root, f.path, v).(map[string]any)
				all = append(all, trial{f, what, o, part == "status"})
			}
		}
	}
	return all
}

// baseFor is the first base that takes a valid value of a field.
func baseFor(ctx context.Context, t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, f field) *unstructured.Unstructured {
	t.Helper()
	var errs []error
	for i := range bases(crd.Spec.Names.Kind) {
		base := object(ctx, t, c, crd, i)
		o := base.DeepCopy()
		o.Object, _ = place(base.Object, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, f.path, kept).(map[string]any)
		err := try(ctx, c, o, f.path[0] == "status")
		if err == nil {
			return base
		}
		errs = append(errs, err)
	}
	t.Fatalf("%s %s: a valid value is refused: %v", crd.Spec.Names.Kind, f, errors.Join(errs...))
	return nil
}

// object is a base that exists.
func object(ctx context.Context, t *testing.T, c client.Client, crd *apiextensionsv1.CustomResourceDefinition, i int) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, yaml.Unmarshal([]byte(bases(crd.Spec.Names.Kind)[i]), &o.Object))
	o.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
	o.SetKind(crd.Spec.Names.Kind)
	o.SetNamespace(metav1.NamespaceDefault)
	o.SetName(fmt.Sprintf("base-%d", i))
	err := c.Create(ctx, o)
	if apierrors.IsAlreadyExists(err) {
		err = c.Get(ctx, client.ObjectKeyFromObject(o), o)
	}
	must(t, err)
	return o
}

// try asks the API server whether it would take an object.
func try(ctx context.Context, c client.Client, o *unstructured.Unstructured, status bool) error {
	o = o.DeepCopy()
	if status {
		return c.Status().Update(ctx, o, client.DryRunAll)
	}
	o.SetName("trial")
	o.SetResourceVersion("")
	return c.Create(ctx, o, client.DryRunAll)
}

// names says that a refusal names the field: its path, or that of what it is in and the field in the message.
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

// TestWrongValues: each wrong value of each field of each kind is refused by the field's name. What the API server takes all
// the same is listed.
func TestWrongValues(t *testing.T) {
	ctx := deadline(t, 10*time.Minute)
	c := admin()
	serve(ctx, t, definitions(t)...)
	for _, crd := range definitions(t) {
		t.Run(crd.Spec.Names.Kind, func(t *testing.T) {
			all := trials(ctx, t, c, crd)
			errs := make([]error, len(all))
			var group errgroup.Group
			group.SetLimit(16)
			for i := range all {
				group.Go(func() error {
					errs[i] = try(ctx, c, all[i].object, all[i].status)
					return nil
				})
			}
			must(t, group.Wait())
			refused := 0
			for i := range all {
				switch err := errs[i]; {
				case err == nil:
					t.Logf("taken: %s", &all[i])
				case names(err, all[i].field):
					refused++
				default:
					t.Errorf("%s: the refusal does not name the field: %v", &all[i], err)
				}
			}
			t.Logf("%d wrong values, %d refused", len(all), refused)
		})
	}
}
