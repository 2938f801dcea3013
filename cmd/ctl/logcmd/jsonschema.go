package logcmd

import (
	"encoding"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"

	"github.com/google/jsonschema-go/jsonschema"
)

// jsonSchema returns the JSON Schema (draft 2020-12) of the data of one event type.
func jsonSchema(eventType string, data reflect.Type) (*jsonschema.Schema, error) {
	special := make(map[reflect.Type]*jsonschema.Schema)
	collect(data, special, make(map[reflect.Type]bool))
	s, err := describeType(data, &jsonschema.ForOptions{TypeSchemas: special})
	if err != nil {
		return nil, fmt.Errorf("describing %s: %w", eventType, err)
	}
	s.Schema, s.ID, s.Title = "https://json-schema.org/draft/2020-12/schema", "https://scute.dev/events/"+eventType+".json", eventType
	return s, nil
}

// describeType works like ForType, and adds the fields that ForType omits: fields of embedded
// structs that are hidden by another field in Go, although their JSON names differ.
func describeType(t reflect.Type, o *jsonschema.ForOptions) (*jsonschema.Schema, error) {
	s, err := jsonschema.ForType(t, o)
	if err != nil {
		return nil, err
	}
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous || f.Type.Kind() != reflect.Struct {
			continue
		}
		embedded, err := describeType(f.Type, o)
		if err != nil {
			return nil, err
		}
		for _, name := range embedded.PropertyOrder {
			if s.Properties[name] != nil {
				continue
			}
			s.Properties[name] = embedded.Properties[name]
			s.PropertyOrder = append(s.PropertyOrder, name)
			if slices.Contains(embedded.Required, name) {
				s.Required = append(s.Required, name)
			}
		}
	}
	return s, nil
}

// collect adds to special the schemas of t, and of all types within t, whose JSON form does not
// follow from their Go kind.
func collect(t reflect.Type, special map[reflect.Type]*jsonschema.Schema, seen map[reflect.Type]bool) {
	if seen[t] {
		return
	}
	seen[t] = true
	switch {
	case t.Kind() == reflect.Pointer:
		collect(t.Elem(), special, seen)
	case t == reflect.TypeFor[json.RawMessage]():
		special[t] = &jsonschema.Schema{} // any value
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()): // includes time.Time
		special[t] = &jsonschema.Schema{Type: "string"}
	case t.Implements(reflect.TypeFor[json.Marshaler]()):
		special[t] = &jsonschema.Schema{}
	case t == reflect.TypeFor[[]byte]():
		special[t] = &jsonschema.Schema{Types: []string{"null", "string"}, ContentEncoding: "base64"}
	case t.Kind() == reflect.Slice, t.Kind() == reflect.Array, t.Kind() == reflect.Map:
		collect(t.Elem(), special, seen)
	case t.Kind() == reflect.Struct:
		for i := range t.NumField() {
			collect(t.Field(i).Type, special, seen)
		}
	}
}
