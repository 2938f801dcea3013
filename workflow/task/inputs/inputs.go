package inputs

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
	"scute.dev/workflow/task"
)

// Kept is the problem of an input that would be in the log, which keeps it forever.
func Kept(field, message, remedy string) workflow.Problem {
	return workflow.Problem{Field: field, Message: message + ", and the log keeps it forever", Remedy: remedy}
}

// Strict decodes the inputs of a kind. A field that the kind does not have is a problem, as is one of another type.
func Strict(with json.RawMessage, into any) []workflow.Problem {
	if len(bytes.TrimSpace(with)) == 0 {
		return nil
	}
	if err := document.JSON(with); err != nil {
		return []workflow.Problem{{Message: err.Error(), Remedy: "write less into one task"}}
	}
	d := json.NewDecoder(bytes.NewReader(with))
	d.DisallowUnknownFields()
	err := d.Decode(into)
	if err == nil {
		if _, err = d.Token(); errors.Is(err, io.EOF) {
			return nil
		}
		return []workflow.Problem{{Message: "there is more than one object", Remedy: "give one object"}}
	}
	var wrong *json.UnmarshalTypeError
	switch name, unknown := strings.CutPrefix(err.Error(), "json: unknown field "); {
	case unknown:
		name = strings.Trim(name, `"`)
		return []workflow.Problem{{Field: name, Message: fmt.Sprintf("unknown field %q", name), Remedy: "remove it or correct its name"}}
	case errors.As(err, &wrong):
		return []workflow.Problem{{Field: wrong.Field, Message: "it is of the type " + wrong.Value, Remedy: "give " + Named(wrong.Type)}}
	default:
		return []workflow.Problem{{Message: err.Error(), Remedy: "correct it"}}
	}
}

// Named is a type as users know it.
func Named(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return Named(t.Elem())
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

// Read decodes the inputs for an attempt, when templates are filled in: what was not checked before is checked now.
func Read[W any](c *task.Call, check func(json.RawMessage) []workflow.Problem) (W, error) {
	var with W
	filled := texts(c.With, reflect.TypeFor[W]())
	for _, p := range check(filled) {
		if p.Warning {
			continue
		}
		return with, task.Final(fmt.Errorf("with.%s: %s: %s", p.Field, p.Message, p.Remedy))
	}
	if problems := Strict(filled, &with); len(problems) > 0 {
		return with, task.Final(errors.New("with: " + problems[0].String()))
	}
	return with, nil
}

// Templated says that a string must be filled in from the outputs of other tasks: nothing is known of it yet. One that only looks so is
// refused when a run is built.
func Templated(s string) bool {
	refs, err := workflow.References(json.RawMessage(s))
	return len(refs) > 0 || err != nil
}

// Literal is a string with the defaults of its references in their place, and with ${} in that of one without.
func Literal(s string) string {
	return workflow.ReplaceReferences(s, func(ref workflow.Reference) string {
		if ref.HasDefault {
			return ref.Default
		}
		return "${}"
	})
}
