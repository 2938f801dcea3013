package move

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

func notFound(w http.ResponseWriter) {
	w.WriteHeader(http.StatusNotFound)
	fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
}

// TestUndoWithoutItsMove checks that the undo of a completed move fails if its Move resource was deleted, and succeeds
// if the move never started.
func TestUndoWithoutItsMove(t *testing.T) {
	k := daemons(t, func(w http.ResponseWriter, _, _ string) {
		notFound(w)
	})
	c := startedCall(t, false)
	if err := k.Undo(t.Context(), c); err != nil {
		t.Errorf("Undo without a move = %v", err)
	}
	c.Output = json.RawMessage(`{"move": "b", "clusters": 1, "objects": 20}`)
	if err := k.Undo(t.Context(), c); !errors.Is(err, ErrMoved) || !task.IsFinal(err) {
		t.Errorf("Undo of a completed move = %v, want ErrMoved", err)
	}
}

// TestAFailedMoveIsDeletedMeanwhile deletes the first Move of a task, which was rolled back, after the second one has
// started. The next attempt must continue with the second one without creating another, and the undo must abort it.
func TestAFailedMoveIsDeletedMeanwhile(t *testing.T) {
	c := startedCall(t, false)
	c.With, c.Undo = json.RawMessage(initialInputs), nil
	c.Record = func(context.Context, json.RawMessage, bool) error { return nil }
	base := resourceBase(c)
	phases := map[string]string{base: "RolledBack"}
	finished := map[bool]string{true: `, "finishedAt": "2026-01-02T03:04:05Z"`}
	var made, aborted []string
	var cancel context.CancelFunc
	k := daemons(t, func(w http.ResponseWriter, method, name string) {
		switch method {
		case http.MethodPost:
			name = base + "-2"
			if len(made) > 0 {
				name = "another"
			}
			made = append(made, name)
			phases[name] = "Creating"
			cancel() // the process ends
		case http.MethodPatch:
			aborted = append(aborted, name)
			phases[name] = "RolledBack"
		}
		phase := phases[name]
		if phase == "" {
			notFound(w)
			return
		}
		fmt.Fprintf(w, `{"apiVersion": "scute.dev/v1alpha1", "kind": "Move", "metadata": {"namespace": "fleet", "name": %q, "uid": "u", "annotations": {%q: %q}},
			"spec": {"selection": {"clusters": ["a"]}, "target": {"kubeconfigSecretRef": {"name": "green", "key": "value"}}}, "status": {"phase": %q%s}}`,
			name, access.StepKeyAnnotation, c.Key(), phase, finished[phase == "RolledBack"])
	})
	attempt := func() {
		t.Helper()
		var ctx context.Context
		ctx, cancel = context.WithCancel(t.Context())
		defer cancel()
		if len(made) > 0 {
			c.Progress = func(string) { cancel() } // it follows the existing move
		}
		if _, err := k.Run(ctx, c); !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
	}
	c.Progress = func(string) {}
	attempt()
	delete(phases, base)
	attempt()
	if want := []string{base + "-2"}; !slices.Equal(made, want) {
		t.Errorf("created %v, want %v", made, want)
	}
	if err := k.Undo(t.Context(), c); err != nil || !slices.Equal(aborted, []string{base + "-2"}) {
		t.Errorf("aborted %v, error %v", aborted, err)
	}
}
