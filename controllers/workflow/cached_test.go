package workflow

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/controllertest"
	"scute.dev/workflow"
)

// storedRun returns a large WorkflowRun with large metadata.
func storedRun() *v1alpha1.WorkflowRun {
	large := strings.Repeat("x", 10_000)
	owners := make([]metav1.OwnerReference, 300)
	for i := range owners {
		owners[i] = metav1.OwnerReference{APIVersion: "v1", Kind: "ConfigMap", Name: "owner", UID: types.UID(strconv.Itoa(i))}
	}
	return &v1alpha1.WorkflowRun{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "fleet", Name: "up", UID: "0123456789", Generation: 1, Finalizers: []string{finalizer}, OwnerReferences: owners,
			Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": large, v1alpha1.AdoptedAnnotation: large, specBytes: "nonsense"},
			Labels:      map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{
				Manager: "kubectl", Operation: metav1.ManagedFieldsOperationUpdate, APIVersion: "scute.dev/v1alpha1", FieldsType: "FieldsV1", FieldsV1: metav1.NewFieldsV1(`{"f:spec":{}}`),
			}},
		},
		Spec: v1alpha1.WorkflowRunSpec{
			ServiceAccountName: "runs", Suspend: true,
			Tasks: []v1alpha1.TaskSpec{{StepSpec: v1alpha1.StepSpec{Name: "a", Kind: "Do", With: &apiextensionsv1.JSON{Raw: []byte(`"` + large + `"`)}}}},
		},
	}
}

// TestCached checks that the cache keeps little of a large WorkflowRun, and that writing the cached object does not
// change the omitted fields.
func TestCached(t *testing.T) {
	api := controllertest.Client(t, storedRun())
	key := client.ObjectKeyFromObject(storedRun())
	var before, w v1alpha1.WorkflowRun
	for _, into := range []*v1alpha1.WorkflowRun{&before, &w} {
		if err := api.Get(t.Context(), key, into); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Cached(&w); err != nil {
		t.Fatal(err)
	}
	if text, err := json.Marshal(&w); len(text) > 1000 || !w.Spec.Suspend || w.Generation != 1 || err != nil {
		t.Errorf("got %d bytes, error %v: %.1000s", len(text), err, text)
	}
	r := &Reconciler{Base: controllertest.Base(api)}
	if err := r.publishWaiting(t.Context(), w.DeepCopy(), "it waits", ""); err != nil {
		t.Fatal(err)
	}
	var after v1alpha1.WorkflowRun
	if err := api.Get(t.Context(), key, &after); err != nil || after.Status.Message != "it waits" {
		t.Fatalf("Get = %v, status = %+v", err, after.Status)
	}
	after.Status, after.ResourceVersion = before.Status, before.ResourceVersion
	if diff := cmp.Diff(&before, &after); diff != "" {
		t.Errorf("other fields were changed: %.1000s", diff)
	}
}

// TestCachedUnreadable checks that the raw value of an unreadable spec is not cached.
func TestCachedUnreadable(t *testing.T) {
	w := &v1alpha1.WorkflowRun{}
	if err := json.Unmarshal([]byte(`{"spec":["`+strings.Repeat("x", 10_000)+`"]}`), w); err != nil {
		t.Fatal(err)
	}
	if _, err := Cached(w); err != nil {
		t.Fatal(err)
	}
	if unread := w.Unread(); unread == nil || unread.Raw != nil || unread.Problem == "" {
		t.Errorf("Unread = %.300v", unread)
	}
}

// recordingDefiner is a definer that records the requested spec.
type recordingDefiner struct{ spec *v1alpha1.WorkflowRunSpec }

var errRecorded = errors.New("it was asked")

func (a *recordingDefiner) Definition(_ context.Context, _, _ string, spec *v1alpha1.WorkflowRunSpec) (*workflow.Definition, []workflow.Problem, error) {
	a.spec = spec
	return nil, nil, errRecorded
}

// unknownRun is a log without runs.
type unknownRun struct{ domain }

func (unknownRun) Summary(string) (workflow.Summary, bool)                  { return workflow.Summary{}, false }
func (unknownRun) Status(string) (s v1alpha1.WorkflowRunStatus, known bool) { return s, false }
func (unknownRun) Open(string, string) []string                             { return nil }
func (unknownRun) WithFiles(string, string) []string                        { return nil }
func (unknownRun) Recall(context.Context, string) (v1alpha1.WorkflowRunStatus, bool, error) {
	return v1alpha1.WorkflowRunStatus{}, false, nil
}

// TestBeginsByTheWholeSpec checks that a run starts with the stored spec instead of the cached one, and not while the
// cache is outdated.
func TestBeginsByTheWholeSpec(t *testing.T) {
	for name, change := range map[string]func(*v1alpha1.WorkflowRun){
		"":                 func(*v1alpha1.WorkflowRun) {},
		"another":          func(w *v1alpha1.WorkflowRun) { w.UID = "89abcdef01" },
		"it was changed":   func(w *v1alpha1.WorkflowRun) { w.Generation++ },
		"it is gone again": func(w *v1alpha1.WorkflowRun) { w.Name = "another" },
	} {
		live := storedRun()
		change(live)
		cached := interceptor.NewClient(controllertest.Client(t, storedRun()), interceptor.Funcs{
			Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
				err := c.Get(ctx, key, o, options...)
				return errors.Join(err, func() error { _, err := Cached(o); return err }())
			},
		})
		var definer recordingDefiner
		r := &Reconciler{Base: controllertest.Base(cached), Runs: unknownRun{}, Definer: &definer}
		r.Live = controllertest.Client(t, live)
		_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(storedRun())})
		if begins := name == ""; errors.Is(err, errRecorded) != begins || !begins && err != nil || (definer.spec != nil) != begins {
			t.Errorf("%s: Reconcile = %v", name, err)
		}
		if definer.spec != nil && !cmp.Equal(*definer.spec, live.Spec) {
			t.Errorf("requested spec = %+v", definer.spec)
		}
	}
}

// damaged is a log that does not contain the run, and cannot read an earlier run of the same name, which left files.
type damaged struct{ unknownRun }

func (damaged) WithFiles(string, string) []string { return []string{"fleet/up/89abcdef"} }

func (damaged) State(context.Context, string) (*workflow.State, uint64, error) {
	return nil, 0, errors.New("an event of a later version")
}

// TestFilesOfAnEarlierRunThatCannotBeRead checks that these files do not block a run from starting.
func TestFilesOfAnEarlierRunThatCannotBeRead(t *testing.T) {
	api := controllertest.Client(t, storedRun())
	r := &Reconciler{Base: controllertest.Base(api), Runs: damaged{}, Definer: &recordingDefiner{}}
	if _, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(storedRun())}); !errors.Is(err, errRecorded) {
		t.Errorf("the run was not started: %v", err)
	}
}
