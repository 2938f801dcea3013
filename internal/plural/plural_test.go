package plural_test

import (
	"testing"

	"scute.dev/internal/plural"
)

func TestOf(t *testing.T) {
	for got, want := range map[string]string{
		plural.Of(0, "machine"): "0 machines", plural.Of(1, "machine"): "1 machine", plural.Of(uint64(2), "machine"): "2 machines",
		plural.Of(1, "policy", "policies"): "1 policy", plural.Of(2, "policy", "policies"): "2 policies",
	} {
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}
