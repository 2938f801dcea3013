package wait

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestCELIsBounded: a short expression cannot make a text that is larger than the memory.
func TestCELIsBounded(t *testing.T) {
	with := `{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": {"cel": "object.a.replace('x', 'xxxxxxxxxx').replace('x', 'xxxxxxxxxx') == ''"}}`
	problems := (&Kind{}).Validate(json.RawMessage(with))
	if len(problems) == 0 || !strings.Contains(problems[0].String(), "replace") {
		t.Errorf("%v", problems)
	}
}
