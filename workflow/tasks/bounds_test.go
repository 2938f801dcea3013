package tasks

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestCELIsBounded: a short expression cannot make a text that is larger than the memory.
func TestCELIsBounded(t *testing.T) {
	with := `{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": {"cel": "object.a.replace('x', 'xxxxxxxxxx').replace('x', 'xxxxxxxxxx') == ''"}}`
	problems := (&Wait{}).Validate(json.RawMessage(with))
	if len(problems) == 0 || !strings.Contains(problems[0].String(), "replace") {
		t.Errorf("%v", problems)
	}
}

func TestEvidenceIsBounded(t *testing.T) {
	e := &evidence{bundle: bundle{limit: diagnoseFolderBytes}}
	for range 60 {
		e.object(&unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "data": strings.Repeat("x", 1<<20)}})
	}
	if n := len(e.observed); n == 0 || n >= 60 || e.omitted != 60-n {
		t.Errorf("%d objects are kept, %d left out", n, e.omitted)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := range 5 * diagnoseEvents {
		e.event(&unstructured.Unstructured{Object: map[string]any{"lastTimestamp": start.Add(time.Duration(i) * time.Second).Format(time.RFC3339)}})
	}
	if len(e.lines) >= 2*diagnoseEvents {
		t.Errorf("%d events are kept", len(e.lines))
	}
	e.newestEvents()
	if last := e.lines[len(e.lines)-1].at; len(e.lines) != diagnoseEvents || !last.Equal(start.Add((5*diagnoseEvents-1)*time.Second)) {
		t.Errorf("%d events are kept, the last of %s", len(e.lines), last)
	}
}
