package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"

	"scute.dev/kube/document"
	"scute.dev/workflow"
)

// SecretProblem returns the problem that an input contains a secret. The log would keep that secret
// forever.
func SecretProblem(field, message, remedy string) workflow.Problem {
	return workflow.Problem{Field: field, Message: message + ", and the log keeps it forever", Remedy: remedy}
}

// Problems are the problems found in the inputs of a kind.
type Problems []workflow.Problem

// Add adds a problem with a field.
func (p *Problems) Add(field, message, remedy string) {
	*p = append(*p, workflow.Problem{Field: field, Message: message, Remedy: remedy})
}

// CountSet returns how many of several alternatives are set.
func CountSet(alternatives ...bool) (n int) {
	for _, set := range alternatives {
		if set {
			n++
		}
	}
	return n
}

// Decode decodes the inputs of a kind into a new W. It returns the same problems as DecodeStrict.
func Decode[W any](with json.RawMessage) (w W, problems Problems) {
	problems = DecodeStrict(with, &w)
	return w, problems
}

// DecodeStrict decodes the inputs of a kind. It returns a problem for an unknown field or a value
// of the wrong type.
func DecodeStrict(with json.RawMessage, into any) []workflow.Problem {
	if len(bytes.TrimSpace(with)) == 0 {
		return nil
	}
	if err := document.CheckJSON(with); err != nil {
		return []workflow.Problem{{Message: err.Error(), Remedy: "use fewer or shorter inputs"}}
	}
	d := json.NewDecoder(bytes.NewReader(with))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return []workflow.Problem{{Message: "there is more than one object", Remedy: "use one object"}}
	}
	var wrong *json.UnmarshalTypeError
	switch name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); {
	case unknown:
		name = strings.Trim(name, `"`)
		return []workflow.Problem{{Field: name, Message: fmt.Sprintf("unknown field %q", name), Remedy: "remove it or correct its name"}}
	case errors.As(err, &wrong):
		return []workflow.Problem{{Field: wrong.Field, Message: "it has the type " + wrong.Value, Remedy: "write " + TypeName(wrong.Type)}}
	default:
		return []workflow.Problem{{Message: err.Error(), Remedy: "correct the inputs"}}
	}
}

// TypeName returns the word that users know for a type, with an article.
func TypeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return TypeName(t.Elem())
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.String {
			return "a list of strings"
		}
		return "a list"
	case reflect.Map, reflect.Struct:
		return "an object"
	default:
		return "a number"
	}
}

// ReadInputs decodes and checks the inputs of an attempt. All references to outputs are already
// replaced in them.
func ReadInputs[W any](c *Call, check func(json.RawMessage) []workflow.Problem) (W, error) {
	var with W
	filled := stringify(c.With, reflect.TypeFor[W]())
	for _, p := range check(filled) {
		if p.Warning {
			continue
		}
		return with, Final(fmt.Errorf("with.%s: %s: %s", p.Field, p.Message, p.Remedy))
	}
	if problems := DecodeStrict(filled, &with); len(problems) > 0 {
		return with, Final(errors.New("with: " + problems[0].String()))
	}
	return with, nil
}

// HasReferences reports whether a string contains references to outputs of other tasks, so that its
// final value is not known yet. It also returns true for invalid references, which Build rejects.
func HasReferences(s string) bool {
	refs, err := workflow.References(json.RawMessage(s))
	return len(refs) > 0 || err != nil
}

// FillDefaults replaces each reference in a string with the default of the reference, or with ${}
// if the reference has no default.
func FillDefaults(s string) string {
	return workflow.ReplaceReferences(s, func(ref workflow.Reference) string {
		if ref.HasDefault {
			return ref.Default
		}
		return "${}"
	})
}
