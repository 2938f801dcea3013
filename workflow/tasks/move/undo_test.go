package move

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"testing"

	"scute.dev/workflow/task"
)

// TestUndoWithoutItsMove: a move that was made is not undone because its Move resource was deleted since. One that was never begun is.
func TestUndoWithoutItsMove(t *testing.T) {
	k := daemons(t, func(w http.ResponseWriter, _ string) {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "NotFound", "code": 404}`)
	})
	c := begun(t, false)
	if err := k.Undo(t.Context(), c); err != nil {
		t.Errorf("nothing was moved: %v", err)
	}
	c.Output = json.RawMessage(`{"move": "b", "clusters": 1, "objects": 20}`)
	if err := k.Undo(t.Context(), c); !errors.Is(err, ErrMoved) || !task.IsFinal(err) {
		t.Errorf("the clusters are moved: %v", err)
	}
}
