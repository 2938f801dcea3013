package access

import (
	"errors"
	"strings"
	"testing"
)

// TestTemplatesAreBounded checks that the memory and time for a template and variables of a tenant are limited.
func TestTemplatesAreBounded(t *testing.T) {
	values := map[string]string{"A": strings.Repeat("a", 100_000), "B": "b", "VERSION": "v1.36.1"}
	value := func(name string) (string, error) {
		if v, ok := values[name]; ok {
			return v, nil
		}
		return "", errors.New("none")
	}
	for _, template := range []string{
		strings.Repeat("${A}", 10_000), strings.Repeat("${ A }", 10_000), strings.Repeat("$A ${A}", 10_000), "${A//a/" + strings.Repeat("x", 100_000) + "}", "${A//a/${A}}",
		"${A##*b}", "${A%%b*}", strings.Repeat("${MISSING:-", 5_000) + "${A}" + strings.Repeat("}", 5_000), strings.Repeat("${A^^}", 10_000),
	} {
		if _, err := NewTemplateProcessor().Process([]byte(template), value); !errors.Is(err, ErrTemplate) {
			t.Errorf("Process(%.30s) = %v, want ErrTemplate", template, err)
		}
	}
	const says = "${A##...} tries each part of the value, which has 100000 bytes: set the variable to a value that need not be trimmed, or to one of at most 2896 bytes"
	if _, err := NewTemplateProcessor().Process([]byte("${B} ${A##*b} ${B}"), value); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("Process with a long trimmed value = %v", err)
	}
	for template, want := range map[string]string{
		"a ${B} ${ VERSION } ${MISSING:-c} $$x ${VERSION/v/}": "a b v1.36.1 c $x 1.36.1", "${B^^} ${VERSION#v} ${VERSION%%.*} ${A:0:3} ${#B}": "B 1.36.1 v1 aaa 1",
		strings.Repeat("${A}", 10):  strings.Repeat("a", 1_000_000),
		strings.Repeat("x", 15<<20): strings.Repeat("x", 15<<20),
	} {
		if got, err := NewTemplateProcessor().Process([]byte(template), value); err != nil || string(got) != want {
			t.Errorf("Process(%.60s) = %.60q, error %v", template, got, err)
		}
	}
	if _, err := NewTemplateProcessor().Process([]byte("${MISSING}"), value); err == nil || errors.Is(err, ErrTemplate) {
		t.Errorf("Process with an unset variable = %v, want another error than ErrTemplate", err)
	}
}
