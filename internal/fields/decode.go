package fields

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"reflect"
)

// Read fills a zero value with what Append wrote of another one. All of b belongs to it.
func Read[T any](b []byte, v *T) error {
	r := reader{rest: b}
	if err := r.decode(reflect.ValueOf(v).Elem()); err != nil {
		return err
	}
	if len(r.rest) > 0 {
		return fmt.Errorf("%T: %d bytes are left", *v, len(r.rest))
	}
	return nil
}

var errShort = errors.New("the value is cut off")

type reader struct{ rest []byte }

func (r *reader) decode(v reflect.Value) error {
	if t, ok := asTime(v); ok {
		data, err := r.sized()
		if err != nil {
			return err
		}
		return t.UnmarshalBinary(data)
	}
	switch v.Kind() {
	case reflect.Bool:
		data, err := r.bytes(1)
		if err == nil {
			v.SetBool(data[0] != 0)
		}
		return err
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		n, size := binary.Varint(r.rest)
		v.SetInt(n)
		return r.skip(size)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		n, err := r.number()
		v.SetUint(n)
		return err
	case reflect.Float32, reflect.Float64:
		data, err := r.bytes(8)
		if err == nil {
			v.SetFloat(math.Float64frombits(binary.BigEndian.Uint64(data)))
		}
		return err
	case reflect.String:
		data, err := r.sized()
		v.SetString(string(data))
		return err
	case reflect.Struct:
		for i := range v.NumField() {
			if err := r.decode(open(v.Field(i))); err != nil {
				return fmt.Errorf("%s.%s: %w", v.Type(), v.Type().Field(i).Name, err)
			}
		}
		return nil
	case reflect.Array:
		return r.list(v)
	case reflect.Slice:
		return r.slice(v)
	case reflect.Map:
		return r.entries(v)
	case reflect.Pointer:
		n, err := r.number()
		if err != nil || n == none {
			return err
		}
		v.Set(reflect.New(v.Type().Elem()))
		return r.decode(v.Elem())
	case reflect.Interface:
		return nil // it was nil
	default:
		return fmt.Errorf("a value of type %s cannot be read", v.Type())
	}
}

func (r *reader) slice(v reflect.Value) error {
	n, err := r.length()
	if err != nil || n < 0 {
		return err
	}
	if v.Type().Elem().Kind() == reflect.Uint8 {
		data, err := r.bytes(n)
		v.SetBytes(append([]byte{}, data...))
		return err
	}
	v.Set(reflect.MakeSlice(v.Type(), n, n))
	return r.list(v)
}

func (r *reader) list(v reflect.Value) error {
	for i := range v.Len() {
		if err := r.decode(v.Index(i)); err != nil {
			return err
		}
	}
	return nil
}

func (r *reader) entries(v reflect.Value) error {
	n, err := r.length()
	if err != nil || n < 0 {
		return err
	}
	v.Set(reflect.MakeMapWithSize(v.Type(), n))
	for range n {
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		if err := errors.Join(r.decode(key), r.decode(value)); err != nil {
			return err
		}
		v.SetMapIndex(key, value)
	}
	return nil
}

// length of a slice or a map, -1 for nil. Every element takes a byte at least, so that no number makes it reserve more than there is.
func (r *reader) length() (int, error) {
	n, err := r.number()
	if err == nil && n > uint64(len(r.rest))+1 {
		err = errShort
	}
	return int(n) - 1, err //nolint:gosec // it is below the number of bytes
}

func (r *reader) number() (uint64, error) {
	n, size := binary.Uvarint(r.rest)
	return n, r.skip(size)
}

func (r *reader) sized() ([]byte, error) {
	n, err := r.number()
	if err != nil || n > uint64(len(r.rest)) {
		return nil, errShort
	}
	return r.bytes(int(n)) //nolint:gosec // it is below the number of bytes
}

func (r *reader) bytes(n int) ([]byte, error) {
	if n > len(r.rest) {
		return nil, errShort
	}
	data := r.rest[:n]
	r.rest = r.rest[n:]
	return data, nil
}

// skip takes a number away that had a size, which is not positive if it was none.
func (r *reader) skip(size int) error {
	if size <= 0 {
		return errShort
	}
	r.rest = r.rest[size:]
	return nil
}
