package transfer

import (
	"strconv"
	"testing"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestPagesOfUnknownSize checks that the lists of a kind whose size is unknown count with a whole page each, so that
// few of them are in memory at once.
func TestPagesOfUnknownSize(t *testing.T) {
	f := moved(t, mover.Verified{})
	typ := kube.Type{Group: "example.com", Kind: "Thing", Plural: "things", Versions: []string{"v1"}, Namespaced: true}
	var want []wanted
	for i := range maxSingleReads + 1 {
		want = append(want, wanted{typ, object.Ref{Group: typ.Group, Kind: typ.Kind, Namespace: "fleet", Name: strconv.Itoa(i)}})
	}
	if g := f.transfer.groupWanted(f.transfer.Source, want); len(g) != 1 || !g[0].list || g[0].page != unknownWeight {
		t.Errorf("grouped = %+v, want one list with a page of %d", g, unknownWeight)
	}
}
