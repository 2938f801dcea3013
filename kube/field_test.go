package kube_test

import (
	"strings"
	"testing"

	"scute.dev/kube"
)

func TestField(t *testing.T) {
	o := map[string]any{"metadata": map[string]any{"labels": map[string]any{"a.b/c": "d"}}, "status": map[string]any{
		"phase": "Failed", "retries": int64(2),
		"conditions": []any{map[string]any{"type": "Running", "status": "True"}, map[string]any{"type": "Failed", "status": "False"}},
	}}
	for path, want := range map[string]string{
		".status.phase": "Failed", ".status.retries": "2", ".status.none.below": "", ".spec": "",
		`.status.conditions[?(@.type=="Failed")].status`: "False", `.status.conditions[?(@.type=="Done")].status`: "", `.status.none[?(@.type=="Done")].status`: "",
		`.status.conditions[0].type`: "Running", `.status.conditions[-1:].type`: "Failed", `.status['phase']`: "Failed", `.status.conditions[*].type`: "Running Failed",
		`.status.conditions[?(@.type!="Failed")].status`: "True", `.metadata.labels.a\.b/c`: "d",
	} {
		if got, err := kube.Field(o, path); err != nil || got != want {
			t.Errorf("Field(%s) = %q, error %v", path, got, err)
		}
	}
	for _, path := range []string{".status[", `.status.conditions[?(@.type==)]`} {
		if got, err := kube.Field(o, path); err == nil {
			t.Errorf("Field(%s) = %q, want an error", path, got)
		}
	}
}

// TestFieldMultiplies checks that paths are rejected that find more than the object has: a tenant's path could fill the
// memory.
func TestFieldMultiplies(t *testing.T) {
	deep := map[string]any{}
	for at, depth := deep, 0; depth < 40; depth++ {
		below := map[string]any{}
		at["a"], at = below, below
	}
	for _, path := range []string{
		strings.Repeat("..a", 80), "..a", "..[*]", ".a..a", "['a','a']", ".a[0,0]", ".a}{.a", "}{range .a[*]}x{end", ".list[?(@..a==1)]", ".list[?(@['a','a']==1)]",
	} {
		if got, err := kube.Field(deep, path); err == nil {
			t.Errorf("Field(%s) returned %d bytes, want an error", path, len(got))
		}
	}
}
