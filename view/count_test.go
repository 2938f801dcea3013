package view_test

import (
	"testing"

	"scute.dev/view"
)

func TestCount(t *testing.T) {
	for got, want := range map[string]string{
		view.Count(0, "machine"): "0 machines", view.Count(1, "machine"): "1 machine", view.Count(uint64(2), "machine"): "2 machines",
		view.Count(1, "policy", "policies"): "1 policy", view.Count(2, "policy", "policies"): "2 policies",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
