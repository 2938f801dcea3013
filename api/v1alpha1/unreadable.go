package v1alpha1

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	kjson "k8s.io/apimachinery/pkg/util/json"
)

// Unreadable contains the parts of a stored object that this version cannot decode. The object may
// have been stored with an earlier schema, or have a value that no schema refuses, such as a list
// for a time. One such object must not prevent a list or watch of the others. The unreadable part
// is therefore empty in the object, is recorded here, and is written back unchanged.
type Unreadable struct {
	Spec, Status *UnreadablePart
}

// UnreadablePart is a spec or a status that cannot be decoded.
type UnreadablePart struct {
	// Field is the path of the first field that cannot be decoded.
	Field string
	// Problem is the reason, and how to correct the field.
	Problem string
	Raw     json.RawMessage
}

func (p *UnreadablePart) String() string { return p.Field + " cannot be read: " + p.Problem }

// Unread returns the part of the object that cannot be decoded, the spec before the status; nil if there is none.
func (u *Unreadable) Unread() *UnreadablePart {
	if u.Spec != nil {
		return u.Spec
	}
	return u.Status
}

// Parts returns all parts of the object that cannot be decoded.
func (u *Unreadable) Parts() Unreadable { return *u }

// decode decodes an object. T has the fields of its kind without its methods, because UnmarshalJSON
// would recurse.
func decode[T any](data []byte, o *T, unread *Unreadable) error {
	*unread = Unreadable{}
	whole := kjson.Unmarshal(data, o)
	var parts map[string]json.RawMessage
	if whole == nil || json.Unmarshal(data, &parts) != nil {
		return whole
	}
	var found Unreadable
	for name, at := range map[string]**UnreadablePart{"spec": &found.Spec, "status": &found.Status} {
		if raw, ok := parts[name]; ok {
			if *at = unreadable[T](name, raw); *at != nil {
				delete(parts, name)
			}
		}
	}
	rest, err := json.Marshal(parts)
	if err != nil {
		return err
	}
	*o = *new(T)
	err = kjson.Unmarshal(rest, o)
	*unread = found // last, because it is a field of o
	return err
}

// encode encodes an object. It writes a part that could not be decoded unchanged, unless the part was set since.
func encode[T any](o *T, unread Unreadable) ([]byte, error) {
	data, err := json.Marshal(o)
	if err != nil || unread.Unread() == nil {
		return data, err
	}
	empty, err := json.Marshal(new(T))
	if err != nil {
		return nil, err
	}
	var now, none map[string]json.RawMessage
	if err := errors.Join(json.Unmarshal(data, &now), json.Unmarshal(empty, &none)); err != nil {
		return nil, err
	}
	for name, part := range map[string]*UnreadablePart{"spec": unread.Spec, "status": unread.Status} {
		if part != nil && bytes.Equal(now[name], none[name]) {
			now[name] = part.Raw
		}
	}
	return json.Marshal(now)
}

// unreadable returns nil if the part can be decoded into a T.
func unreadable[T any](name string, raw json.RawMessage) *UnreadablePart {
	read := func(v any) error {
		data, err := json.Marshal(map[string]any{name: v})
		if err != nil {
			return err
		}
		return kjson.Unmarshal(data, new(T))
	}
	var v any
	if err := kjson.Unmarshal(raw, &v); err != nil {
		return &UnreadablePart{Field: name, Problem: beginning(err.Error()), Raw: raw}
	}
	err := read(v)
	if err == nil {
		return nil
	}
	field, err := locate(v, read, err)
	return &UnreadablePart{Field: beginning(name + field), Problem: beginning(problem(err)), Raw: slices.Clone(raw)}
}

// beginning returns the first KiB of a text, which may contain a name or a value of any size.
func beginning(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// locate returns the path of the first field in v that cannot be decoded. It decodes each field separately.
func locate(v any, read func(any) error, err error) (string, error) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			alone := func(x any) error { return read(map[string]any{key: x}) }
			if err := alone(v[key]); err != nil {
				field, err := locate(v[key], alone, err)
				return "." + key + field, err
			}
		}
	case []any:
		for i := range v {
			alone := func(x any) error { return read([]any{x}) }
			if err := alone(v[i]); err != nil {
				field, err := locate(v[i], alone, err)
				return "[" + strconv.Itoa(i) + "]" + field, err
			}
		}
	}
	return "", err
}

func problem(err error) string {
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return fmt.Sprintf("it is of type %s, and must be %s", wrong.Value, wrong.Type)
	}
	return err.Error()
}
