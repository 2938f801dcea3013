package ui

import (
	"net/http"
	"strings"
	"testing"

	"scute.dev/cmd/ctl/kit"
)

// TestDeletePause checks that a Pause is deleted only if it is the one on the page and the user may delete it, and only
// once.
func TestDeletePause(t *testing.T) {
	a, h := newAPI(t)
	ask := kit.Action{Do: "delete", Kind: "pause", Namespace: "fleet", Name: "late", ID: "fleet/late/77aa"}
	other := ask
	other.ID = "fleet/late/0000"
	if w := get(t, h, http.MethodGet, "/act?"+queryOf(other).Encode()); w.Code != http.StatusConflict {
		t.Errorf("another Pause of the same name: got %d %s", w.Code, w.Body)
	}
	values := confirmationFormOf(t, h, ask, "77aa")
	a.refuses = true
	if w := form(t, h, values); w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), "cannot delete resource") {
		t.Errorf("without permission: got %d %s", w.Code, w.Body)
	}
	a.refuses = false
	created := a.pause.UID
	a.pause.UID = "88bb"
	if w := form(t, h, values); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "created again") {
		t.Errorf("recreated Pause: got %d %s", w.Code, w.Body)
	}
	a.pause.UID = created
	w := form(t, h, values)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), "pause fleet/late is being deleted") || a.deletes != 1 {
		t.Fatalf("got %d %s, %d deletions", w.Code, w.Body, a.deletes)
	}
	if w := get(t, h, http.MethodGet, "/act?"+queryOf(ask).Encode()); w.Code != http.StatusConflict || !strings.Contains(w.Body.String(), "is being deleted") {
		t.Errorf("deleted Pause: got %d %s", w.Code, w.Body)
	}
}
