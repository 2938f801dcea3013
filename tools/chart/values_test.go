package chart_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestEveryValueIsUsed: a template reads each value of values.yaml, by its own name or with all of the map that has it.
func TestEveryValueIsUsed(t *testing.T) {
	text, err := os.ReadFile("../../charts/scute/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var values map[string]any
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob("../../charts/scute/templates/*")
	if err != nil || len(files) == 0 {
		t.Fatalf("no templates: %v", err)
	}
	var templates strings.Builder
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		templates.Write(text)
	}
	if got := unused(values, templates.String()); len(got) > 0 {
		t.Errorf("no template reads %s: a user who sets it changes nothing", strings.Join(got, ", "))
	}
	got := unused(map[string]any{"a": map[string]any{"b": 1, "c": 1}, "d": map[string]any{"e": 1}}, "{{ .Values.a.b }} {{ toYaml .Values.d }}")
	if !slices.Equal(got, []string{"a.c"}) {
		t.Errorf("found %v, want a.c alone", got)
	}
}

// unused are the paths of the values that no template reads.
func unused(values map[string]any, templates string) (paths []string) {
	for name, value := range values {
		below, ok := value.(map[string]any)
		whole := regexp.MustCompile(`\.` + name + `\b[^.]`).MatchString(templates)
		switch {
		case ok && !whole:
			for _, path := range unused(below, templates) {
				paths = append(paths, name+"."+path)
			}
		case !whole && !strings.Contains(templates, "."+name+"."):
			paths = append(paths, name)
		}
	}
	slices.Sort(paths)
	return paths
}
