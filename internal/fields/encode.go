package fields

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"reflect"
	"slices"
	"time"
	"unsafe"
)

// Append appends what v points to.
func Append[T any](b []byte, v *T) ([]byte, error) { return encode(b, reflect.ValueOf(v).Elem()) }

// A slice, a map or a pointer that is nil has the length 0, and an empty one has 1.
const none = 0

func encode(b []byte, v reflect.Value) ([]byte, error) {
	if t, ok := asTime(v); ok {
		data, err := t.MarshalBinary()
		return appendBytes(b, data), err
	}
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1), nil
		}
		return append(b, 0), nil
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return binary.AppendVarint(b, v.Int()), nil
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return binary.AppendUvarint(b, v.Uint()), nil
	case reflect.Float32, reflect.Float64:
		return binary.BigEndian.AppendUint64(b, math.Float64bits(v.Float())), nil
	case reflect.String:
		return append(binary.AppendUvarint(b, uint64(v.Len())), v.String()...), nil
	case reflect.Struct:
		return encodeStruct(b, v)
	case reflect.Array:
		return encodeList(b, v)
	case reflect.Slice:
		if v.IsNil() {
			return append(b, none), nil
		}
		b = binary.AppendUvarint(b, uint64(v.Len())+1)
		if v.Type().Elem().Kind() == reflect.Uint8 {
			return append(b, v.Bytes()...), nil
		}
		return encodeList(b, v)
	case reflect.Map:
		return encodeMap(b, v)
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, none), nil
		}
		return encode(append(b, 1), v.Elem())
	default:
		if v.Kind() == reflect.Interface && v.IsNil() {
			return b, nil
		}
		return nil, fmt.Errorf("a value of type %s cannot be saved", v.Type())
	}
}

func encodeStruct(b []byte, v reflect.Value) ([]byte, error) {
	for i := range v.NumField() {
		var err error
		if b, err = encode(b, open(v.Field(i))); err != nil {
			return nil, fmt.Errorf("%s.%s: %w", v.Type(), v.Type().Field(i).Name, err)
		}
	}
	return b, nil
}

func encodeList(b []byte, v reflect.Value) (_ []byte, err error) {
	for i := range v.Len() {
		if b, err = encode(b, v.Index(i)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// encodeMap writes the entries in the order of their keys' bytes.
func encodeMap(b []byte, v reflect.Value) ([]byte, error) {
	if v.IsNil() {
		return append(b, none), nil
	}
	type entry struct{ key, value []byte }
	entries := make([]entry, 0, v.Len())
	key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
	for walk := v.MapRange(); walk.Next(); {
		key.SetIterKey(walk)
		value.SetIterValue(walk)
		k, err := encode(nil, key)
		if err != nil {
			return nil, err
		}
		e, err := encode(nil, value)
		if err != nil {
			return nil, err
		}
		entries = append(entries, entry{k, e})
	}
	slices.SortFunc(entries, func(a, b entry) int { return bytes.Compare(a.key, b.key) })
	b = binary.AppendUvarint(b, uint64(len(entries))+1)
	for _, e := range entries {
		b = append(append(b, e.key...), e.value...)
	}
	return b, nil
}

func appendBytes(b, data []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(data))), data...)
}

// asTime gives a time, which is written as its package does it.
func asTime(v reflect.Value) (*time.Time, bool) {
	if v.Type() != reflect.TypeFor[time.Time]() {
		return nil, false
	}
	t, ok := v.Addr().Interface().(*time.Time)
	return t, ok
}

// open lets a field be read and set although it is not exported. The field is one of an addressable struct.
func open(field reflect.Value) reflect.Value {
	return reflect.NewAt(field.Type(), unsafe.Pointer(field.UnsafeAddr())).Elem()
}
