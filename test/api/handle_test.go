package api

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
)

// of returns the values with an ending.
func of(end ending, all []trial, rules []*rule) []trial {
	return slices.DeleteFunc(slices.Clone(all), func(t trial) bool {
		other, _ := t.end(rules)
		return other != end
	})
}

// areReported creates objects with wrong values, and waits until the conditions of each name the wrong field and report
// a stall.
func areReported(ctx context.Context, t *testing.T, all []trial) {
	t.Helper()
	objects := make([]*unstructured.Unstructured, len(all))
	for i := range all {
		objects[i] = fresh(all[i].object, fmt.Sprintf("wrong-%d", i))
		harness.Must(t, admin().Create(ctx, objects[i]))
	}
	for i, o := range objects {
		wait(ctx, t, all[i].String()+" is reported", func() error {
			harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(o), o))
			if said := complaints(o); !strings.Contains(said, all[i].known()) {
				return fmt.Errorf("its condition Stalled says %q, and not %s", said, all[i].known())
			}
			return nil
		})
	}
	remove(ctx, t, objects...)
}

// known returns the path of the field as far as it is in the schema, without the keys of maps.
func (t *trial) known() string {
	path := t.path
	if i := slices.Index(path, value); i >= 0 {
		path = path[:i]
	}
	return field{path: path}.String()
}

// complaints returns the messages of the conditions if the object is stalled.
func complaints(o *unstructured.Unstructured) string {
	var said []string
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	stalled := false
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			stalled = stalled || c["type"] == v1alpha1.ConditionStalled && c["status"] == string(metav1.ConditionTrue)
			said = append(said, fmt.Sprint(c["message"]))
		}
	}
	if !stalled {
		return ""
	}
	return strings.Join(said, "\n")
}

// areRewritten writes wrong values into statuses, and waits until the daemon has restored them.
func areRewritten(ctx context.Context, t *testing.T, crds []*apiextensionsv1.CustomResourceDefinition, all []trial) {
	t.Helper()
	for _, crd := range crds {
		kind := crd.Spec.Names.Kind
		if _, ok := crd.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["status"]; !ok {
			continue
		}
		base := &unstructured.Unstructured{}
		base.SetGroupVersionKind(v1alpha1.GroupVersion().WithKind(kind))
		base = fresh(object(ctx, t, admin(), crd, 0), "rewritten")
		harness.Must(t, client.IgnoreAlreadyExists(admin().Create(ctx, base)))
		before := settled(ctx, t, base)
		byWhat := make(map[string][]trial)
		for _, wrong := range all {
			if wrong.object.GetKind() == kind {
				byWhat[wrong.what] = append(byWhat[wrong.what], wrong)
			}
		}
		for _, what := range slices.Sorted(maps.Keys(byWhat)) {
			overwrite(ctx, t, crd, base, byWhat[what])
			wait(ctx, t, fmt.Sprintf("the status of a %s with %s in %d fields is rewritten", kind, what, len(byWhat[what])), func() error {
				now := base.DeepCopy()
				harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(base), now))
				if diff := cmp.Diff(before, timeless(t, now)); diff != "" {
					return fmt.Errorf("(-before +now):\n%s", diff)
				}
				return nil
			})
		}
		remove(ctx, t, base)
	}
}

// overwrite writes wrong values into the status of an object, and changes an annotation of it that the daemon watches.
func overwrite(ctx context.Context, t *testing.T, crd *apiextensionsv1.CustomResourceDefinition, o *unstructured.Unstructured, wrong []trial) {
	t.Helper()
	wait(ctx, t, "the status of a "+o.GetKind()+" can be written", func() error {
		harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(o), o))
		for i := range wrong {
			o.Object = with(o, crd.Spec.Versions[0].Schema.OpenAPIV3Schema, wrong[i].path, wrong[i].value).Object
		}
		err := admin().Status().Update(ctx, o)
		if err != nil && !apierrors.IsConflict(err) {
			t.Fatal(err)
		}
		return err
	})
	now := o.DeepCopy()
	now.SetAnnotations(map[string]string{"scute.dev/round": wrong[0].what})
	harness.Must(t, admin().Patch(ctx, now, client.MergeFrom(o)))
}

// settled returns the status of an object after it has settled.
func settled(ctx context.Context, t *testing.T, o *unstructured.Unstructured) (status map[string]any) {
	t.Helper()
	wait(ctx, t, "a good "+o.GetKind()+" rests", func() error {
		harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(o), o))
		status = timeless(t, o)
		conditions, _, _ := unstructured.NestedSlice(status, "conditions")
		for _, c := range conditions {
			if c, ok := c.(map[string]any); ok && c["type"] == v1alpha1.ConditionReconciling && c["status"] == string(metav1.ConditionFalse) {
				return nil
			}
		}
		return fmt.Errorf("its status is %v", status)
	})
	return status
}

// timeless returns a status as scute reads it, without the times of its conditions, which change with each write.
func timeless(t *testing.T, o *unstructured.Unstructured) map[string]any {
	t.Helper()
	status, _ := understood(t, o)["status"].(map[string]any)
	conditions, _ := status["conditions"].([]any)
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok {
			delete(c, "lastTransitionTime")
		}
	}
	return status
}

// fresh returns an object with the same spec and another name, in the namespace of the bad objects.
func fresh(o *unstructured.Unstructured, name string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: map[string]any{"spec": o.DeepCopy().Object["spec"]}}
	out.SetGroupVersionKind(o.GroupVersionKind())
	call(out, "bad", name)
	return out
}

// remove deletes objects and waits until they no longer exist.
func remove(ctx context.Context, t *testing.T, objects ...*unstructured.Unstructured) {
	t.Helper()
	for _, o := range objects {
		harness.Must(t, client.IgnoreNotFound(admin().Delete(ctx, o)))
	}
	for _, o := range objects {
		wait(ctx, t, o.GetKind()+" "+o.GetName()+" is gone", func() error {
			err := admin().Get(ctx, client.ObjectKeyFromObject(o), o.DeepCopy())
			if apierrors.IsNotFound(err) {
				return nil
			}
			return fmt.Errorf("it is still there: %w", err)
		})
	}
}
