package web

import (
	"net/http"
	"strings"
	"testing"

	"scute.dev/ui/act"
)

// TestDeletePause: a Pause is deleted if it is the one that the page spoke of, by who may delete it, and once.
func TestDeletePause(t *testing.T) {
	a, h := changing(t)
	ask := act.Ask{Do: "delete", Kind: "pause", Namespace: "fleet", Name: "late", ID: "fleet/late/77aa"}
	other := ask
	other.ID = "fleet/late/0000"
	if w := get(t, h, http.MethodGet, "/act?"+other.Query().Encode()); w.Code != http.StatusConflict {
		t.Errorf("another one of its name: %d %s", w.Code, w.Body)
	}
	values := askedOf(t, h, ask, "77aa")
	a.refuses = true
	if w := form(t, h, values); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "cannot delete resource") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	a.refuses = false
	created := a.pause.UID
	a.pause.UID = "88bb"
	if w := form(t, h, values); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "created again") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	a.pause.UID = created
	w := form(t, h, values)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "pause fleet/late is being released") || a.deletes != 1 {
		t.Fatalf("%d %s: %d", w.Code, w.Body, a.deletes)
	}
	if w := get(t, h, http.MethodGet, "/act?"+ask.Query().Encode()); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "is being deleted") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}
