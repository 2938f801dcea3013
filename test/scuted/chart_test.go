package scuted

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

var chart = filepath.Join("..", "..", "charts", "scute")

// TestRender renders the chart with its default values, and with values that its schema refuses.
func TestRender(t *testing.T) {
	files, err := Render(chart)
	if err != nil {
		t.Fatal(err)
	}
	all := strings.Join(slices.Collect(maps.Values(files)), "\n---\n")
	for _, want := range []string{"kind: StatefulSet", "kind: ClusterRole\n", "name: moves.scute.dev", "namespace: scute-system"} {
		if !strings.Contains(all, want) {
			t.Errorf("rendered chart lacks %q", want)
		}
	}
	if _, err := Render(chart, "replicas=many"); err == nil || !strings.Contains(err.Error(), "replicas") {
		t.Errorf("Render(replicas=many) = %v, want an error that names the value", err)
	}
	if _, err := Render(chart, "logg.maxBytes=1"); err == nil || !strings.Contains(err.Error(), "logg") {
		t.Errorf("Render with an unknown value = %v, want an error that names it", err)
	}
}
