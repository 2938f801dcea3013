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

// TestEveryValueIsUsed checks that a template reads each value of values.yaml, by name or as part of its map.
func TestEveryValueIsUsed(t *testing.T) {
	values := chartValues(t)
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
		t.Errorf("no template reads %s, so setting it has no effect", strings.Join(got, ", "))
	}
	got := unused(map[string]any{"a": map[string]any{"b": 1, "c": 1}, "d": map[string]any{"e": 1}}, "{{ .Values.a.b }} {{ toYaml .Values.d }}")
	if !slices.Equal(got, []string{"a.c"}) {
		t.Errorf("got %v, want only a.c", got)
	}
}

// TestDocumentedValuesExist checks the values of the chart that the pages name, such as `log.maxBytes`.
func TestDocumentedValuesExist(t *testing.T) {
	values := chartValues(t)
	pages, err := filepath.Glob("../../docs/*.md")
	if err != nil || len(pages) == 0 {
		t.Fatalf("no pages: %v", err)
	}
	dotted := regexp.MustCompile("`([a-z][A-Za-z]*(?:\\.[a-z][A-Za-z]*)+)`")
	others := regexp.MustCompile(`\.(json|log|dev)$`) // files and kinds
	for _, page := range append(pages, "../../SECURITY.md", "../../charts/scute/README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range dotted.FindAllStringSubmatch(string(text), -1) {
			keys := strings.Split(m[1], ".")
			if at, ofChart := values[keys[0]].(map[string]any); ofChart && !others.MatchString(m[1]) && !has(at, keys[1:]) {
				t.Errorf("%s names %s, which is not a value of the chart", page, m[1])
			}
		}
	}
}

// has reports whether a path of keys leads to a value.
func has(values map[string]any, keys []string) bool {
	value, ok := values[keys[0]]
	if below, isMap := value.(map[string]any); ok && isMap && len(keys) > 1 {
		return has(below, keys[1:])
	}
	return ok && len(keys) == 1
}

func chartValues(t *testing.T) (values map[string]any) {
	t.Helper()
	text, err := os.ReadFile("../../charts/scute/values.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.UnmarshalStrict(text, &values); err != nil {
		t.Fatal(err)
	}
	return values
}

// unused returns the paths of values that no template reads.
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
