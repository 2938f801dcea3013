package wait

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/fair"
	"scute.dev/workflow/task/access"
)

// TestWaitIsFresh checks that the status of an earlier generation is ignored unless allowStale is set.
func TestWaitIsFresh(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "generation": int64(4)},
		"status": map[string]any{
			"observedGeneration": int64(3), "replicas": int64(1),
			"conditions": []any{map[string]any{"type": "Available", "status": "True"}},
		},
	}}
	ref := access.RefOf(u)
	for name, w := range map[string]With{
		"cel":       {For: WaitFor{CEL: "object.status.replicas == 1"}},
		"condition": {For: WaitFor{Condition: &WaitCondition{Type: "Available"}}},
	} {
		for stale, want := range map[bool]string{false: ref.String() + ": the status is for generation 3, but the spec has generation 4", true: ""} {
			w.AllowStale = stale
			test, err := w.newTest(nil, new(fair.Slot))
			if err != nil {
				t.Fatal(err)
			}
			if got, err := test(t.Context(), ref, u); got != want || err != nil {
				t.Errorf("%s, allowStale %t: %q, error %v, want %q", name, stale, got, err, want)
			}
		}
	}
}

// TestEvaluationsTakeTurns checks that evaluations of one namespace, which may take seconds each, do not delay those of
// another one.
func TestEvaluationsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		places, begun := fair.NewSlots(1), time.Now()
		slow := func(context.Context, access.ObjectRef, *unstructured.Unstructured) (string, error) {
			time.Sleep(time.Second)
			return "", nil
		}
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { _, _ = withSlot(places.Slot("noisy"), slow)(t.Context(), access.ObjectRef{}, nil) })
		}
		synctest.Wait()
		_, err := withSlot(places.Slot("quiet"), slow)(t.Context(), access.ObjectRef{}, nil)
		if took := time.Since(begun); err != nil || took != time.Second {
			t.Errorf("evaluation took %s, error %v", took, err)
		}
		if all.Wait(); time.Since(begun) != 50*time.Second {
			t.Errorf("50 evaluations of one namespace took %s", time.Since(begun))
		}

		held := places.Slot("noisy")
		<-held.Request()
		w := With{For: WaitFor{CEL: "true"}}
		test, err := w.newTest(nil, places.Slot("noisy"))
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := test(ctx, access.ObjectRef{}, &unstructured.Unstructured{}); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("evaluation without a turn = %v, want DeadlineExceeded", err)
		}
	})
}
