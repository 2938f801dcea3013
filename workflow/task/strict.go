package task

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"scute.dev/workflow"
)

// strict decodes the inputs of a kind. A field that the kind does not have is a problem, as is one of another type.
func strict(with json.RawMessage, into any) []workflow.Problem {
	if len(bytes.TrimSpace(with)) == 0 {
		return nil
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
		return []workflow.Problem{{Field: wrong.Field, Message: "it is a " + wrong.Value, Remedy: "give a " + wrong.Type.String()}}
	default:
		return []workflow.Problem{{Message: err.Error(), Remedy: "correct it"}}
	}
}

// inputs decodes the inputs for an attempt, when templates are filled in: what was not checked before is checked now.
func inputs[W any](c *Call, check func(json.RawMessage) []workflow.Problem) (W, error) {
	var with W
	for _, p := range check(c.With) {
		if p.Warning {
			continue
		}
		return with, Final(fmt.Errorf("with.%s: %s: %s", p.Field, p.Message, p.Remedy))
	}
	if problems := strict(c.With, &with); len(problems) > 0 {
		return with, Final(errors.New("with: " + problems[0].String()))
	}
	return with, nil
}

// templated says that a string is to be filled in from the outputs of other tasks: nothing is known of it yet.
func templated(s string) bool { return strings.Contains(s, "${") }
