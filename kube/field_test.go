package kube_test

import (
	"testing"

	"scute.dev/kube"
)

func TestField(t *testing.T) {
	o := map[string]any{"status": map[string]any{
		"phase": "Failed", "retries": int64(2),
		"conditions": []any{map[string]any{"type": "Running", "status": "True"}, map[string]any{"type": "Failed", "status": "False"}},
	}}
	for path, want := range map[string]string{
		".status.phase": "Failed", ".status.retries": "2", ".status.none.below": "", ".spec": "",
		`.status.conditions[?(@.type=="Failed")].status`: "False", `.status.conditions[?(@.type=="Done")].status`: "", `.status.none[?(@.type=="Done")].status`: "",
	} {
		if got, err := kube.Field(o, path); err != nil || got != want {
			t.Errorf("%s: %q, %v", path, got, err)
		}
	}
	for _, path := range []string{".status[", `.status.conditions[?(@.type==)]`} {
		if got, err := kube.Field(o, path); err == nil {
			t.Errorf("%s: %q", path, got)
		}
	}
}
