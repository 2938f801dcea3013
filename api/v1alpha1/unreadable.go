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

// Unreadable is what this version cannot read of a stored object. Objects are stored by the schema of their day, and no
// schema refuses everything that Go cannot decode: kube-apiserver takes a list where a time should be. One such object must
// not keep the others from being read, in a list or on a watch. So it is read as far as it can be: a part that cannot be
// read is empty, is named here, and is written back as it was.
type Unreadable struct {
	Spec, Status *UnreadablePart
}

// UnreadablePart is a spec or a status that cannot be read.
type UnreadablePart struct {
	// Field is the first one that cannot be read, with its path.
	Field string
	// Problem says why, and what to write instead.
	Problem string

	// Raw is the part as it is stored.
	Raw json.RawMessage
}

// String says what cannot be read.
func (p *UnreadablePart) String() string { return p.Field + " cannot be read: " + p.Problem }

// Unread is what cannot be read of an object, of a list of any kind for example; nil when all can be.
func (u *Unreadable) Unread() *UnreadablePart {
	if u.Spec != nil {
		return u.Spec
	}
	return u.Status
}

// Parts are the parts of an object of any kind that cannot be read.
func (u *Unreadable) Parts() Unreadable { return *u }

// decode reads an object into a type that has the fields of its kind and not its methods.
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
	*unread = found // it is a field of o
	return err
}

// encode is the inverse of decode: a part that could not be read, and that nothing was written into, is as it was.
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

// unreadable says what of one part cannot be read into a T; nil when all can be.
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

// beginning returns the first KiB of a text. The text may contain a name or a value that takes most of the object.
func beginning(text string) string {
	const most = 1 << 10
	if len(text) <= most {
		return text
	}
	return strings.ToValidUTF8(text[:most], "") + "…"
}

// locate finds the first field in v that cannot be read, by reading each by itself.
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
