package wait

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// TestCELIsBounded checks that a short expression cannot create a text that exceeds the memory.
func TestCELIsBounded(t *testing.T) {
	with := `{"object": {"apiVersion": "v1", "kind": "Node", "name": "n"}, "for": {"cel": "object.a.replace('x', 'xxxxxxxxxx').replace('x', 'xxxxxxxxxx') == ''"}}`
	problems := (&Kind{}).Validate(json.RawMessage(with))
	if len(problems) == 0 || !strings.Contains(problems[0].String(), "replace") {
		t.Errorf("problems = %v", problems)
	}
}

// TestComparisonsAreBounded checks the cost limit of comparisons, which cannot be interrupted: a short expression can
// create nested lists that use little memory but take days to compare.
func TestComparisonsAreBounded(t *testing.T) {
	const doublings = 22
	u := &unstructured.Unstructured{Object: map[string]any{"a": []any{int64(1)}, "b": map[string]any{"c": "d"}}}
	test := func(text string) (string, error) {
		t.Helper()
		p, err := compileCEL(text)
		if err != nil {
			t.Fatal(err)
		}
		return p.test(t.Context(), access.ObjectRef{}, u)
	}
	for _, double := range []string{".map(x, x + x)", ".map(x, [x, x])", ".map(x, {'a': x, 'b': x})"} {
		for _, last := range []string{"x == x", "x != x", "object.a in [x]", "[x] == [x]"} {
			if _, err := test("[object.a]" + strings.Repeat(double, doublings) + ".exists(x, " + last + ")"); !task.IsFinal(err) {
				t.Errorf("%s, %s: %v, want a final error", double, last, err)
			}
		}
	}
	if _, err := test("['a']" + strings.Repeat(".map(x, x + x)", 30) + ".exists(x, x == '')"); !task.IsFinal(err) {
		t.Errorf("comparison of a text = %v, want a final error", err)
	}
	for _, text := range []string{
		"object.a == [1] && object.a != [2] && 1 in object.a && !(2 in object.a) && 'c' in object.b && object.b == {'c': 'd'} && object.b.c == 'd'",
		"object.a + object.a == [1, 1] && object.a.all(x, x in [1, 2]) && object == object && object.a[0] == 1.0",
	} {
		if why, err := test(text); why != "" || err != nil {
			t.Errorf("%s: %q, error %v", text, why, err)
		}
	}
}

// TestMatchesAreBounded checks the cost limit of regular expressions, whose matching cannot be interrupted: a short one
// with repetitions takes minutes on a text of a ConfigMap, a longer one days.
func TestMatchesAreBounded(t *testing.T) {
	u := &unstructured.Unstructured{Object: map[string]any{"a": strings.Repeat("a", 900_000), "version": "v1.36.1", "n": int64(1)}}
	test := func(text string) (string, error) {
		t.Helper()
		p, err := compileCEL(text)
		if err != nil {
			t.Fatal(err)
		}
		return p.test(t.Context(), access.ObjectRef{}, u)
	}
	for _, text := range []string{
		"object.a.matches('(a?){1000}b')", "matches(object.a, '((a?){100}){10}b')", "[1, 2].all(x, object.a.matches('(a?){1000}b'))",
		"object.version.matches('" + strings.Repeat("(a?){1000}", 200) + "')", "object.a.matches('" + strings.Repeat("a?", 600) + "')",
	} {
		if _, err := test(text); !task.IsFinal(err) || !strings.Contains(err.Error(), "too expensive") {
			t.Errorf("%.60s: %v, want an error about the cost", text, err)
		}
	}
	for _, text := range []string{
		"object.version.matches('^v1[.][0-9]+[.][0-9]+$') && !object.version.matches('^v2')", "object.a.matches('^a+$')",
		"matches(object.version, '(?i)V1') && ['v1', object.version].exists(x, x.matches('36'))", `object.version.matches('^(v\\d+\\.){1}36(\\.\\d{1,3}){0,10}$')`,
	} {
		if why, err := test(text); why != "" || err != nil {
			t.Errorf("%s: %q, error %v", text, why, err)
		}
	}
	for _, text := range []string{"object.n.matches('1')", "object.version.matches(object.n)", "object.version.matches('(')", "object.missing.matches('a')"} {
		if why, err := test(text); why == "" || err != nil {
			t.Errorf("%s: %q, error %v", text, why, err)
		}
	}
}

// TestAnEvaluationThatIsInterrupted checks that an interrupted evaluation returns only the context's error, so that it
// is repeated.
func TestAnEvaluationThatIsInterrupted(t *testing.T) {
	p, err := compileCEL("object.a.all(x, x == 1)")
	if err != nil {
		t.Fatal(err)
	}
	u := &unstructured.Unstructured{Object: map[string]any{"a": slices.Repeat([]any{int64(1)}, 1000)}}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if why, err := p.test(ctx, access.ObjectRef{}, u); why != "" || !errors.Is(err, context.Canceled) {
		t.Errorf("test = %q, error %v", why, err)
	}
}
