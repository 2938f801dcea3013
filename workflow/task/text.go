package task

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
)

// stringify converts numbers and booleans to strings where the type has a string. Such a value
// results from a reference that is the whole field, because it keeps the type of the output.
func stringify(with json.RawMessage, of reflect.Type) json.RawMessage {
	var v any
	d := json.NewDecoder(bytes.NewReader(with))
	d.UseNumber()
	if d.Decode(&v) != nil {
		return with // DecodeStrict returns this error
	}
	converted, changed := stringifyValue(v, of)
	if !changed {
		return with
	}
	data, _ := json.Marshal(converted) // decoded JSON can always be encoded
	return data
}

// stringifyValue converts the value in place.
func stringifyValue(v any, of reflect.Type) (_ any, changed bool) {
	for of.Kind() == reflect.Pointer {
		of = of.Elem()
	}
	if reflect.PointerTo(of).Implements(reflect.TypeFor[json.Unmarshaler]()) {
		return v, false // the type decodes itself
	}
	put := func(field any, of reflect.Type) any {
		field, other := stringifyValue(field, of)
		changed = changed || other
		return field
	}
	switch v := v.(type) {
	case json.Number, bool:
		if of.Kind() == reflect.String {
			return fmt.Sprint(v), true
		}
	case []any:
		for i := range v {
			if of.Kind() == reflect.Slice {
				v[i] = put(v[i], of.Elem())
			}
		}
	case map[string]any:
		for name := range v {
			switch of.Kind() {
			case reflect.Map:
				v[name] = put(v[name], of.Elem())
			case reflect.Struct:
				if field, ok := fieldOf(of, name); ok {
					v[name] = put(v[name], field)
				}
			}
		}
	}
	return v, changed
}

func fieldOf(of reflect.Type, name string) (field reflect.Type, ok bool) {
	for _, f := range reflect.VisibleFields(of) {
		tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && (tag == name || tag == "" && f.Name == name) {
			return f.Type, true
		}
	}
	return nil, false
}
