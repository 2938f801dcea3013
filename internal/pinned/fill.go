package pinned

import (
	"encoding"
	"encoding/json"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// filler sets every field to a value that identifies the field.
type filler struct {
	t         *testing.T
	values    map[reflect.Type]reflect.Value
	enclosing []reflect.Type // types that contain v; inside itself, a type stays empty
}

// sampleTime has a fraction of a second, which some types of time drop.
//
//nolint:gochecknoglobals // a constant that cannot be one
var sampleTime = time.Date(2026, 5, 1, 12, 0, 0, 500_000_000, time.UTC)

func fill(t *testing.T, goType reflect.Type, values []any) any {
	t.Helper()
	f := &filler{t: t, values: make(map[reflect.Type]reflect.Value)}
	for _, v := range append([]any{sampleTime, metav1.NewTime(sampleTime.Truncate(time.Second)), json.RawMessage(`{"raw":"JSON"}`)}, values...) {
		f.values[reflect.TypeOf(v)] = reflect.ValueOf(v)
	}
	v := reflect.New(goType).Elem()
	f.set(v, "")
	return v.Interface()
}

//nolint:exhaustive // kinds that JSON does not support are rejected
func (f *filler) set(v reflect.Value, path string) {
	if known, ok := f.values[v.Type()]; ok {
		v.Set(known)
		return
	}
	if f.encodesItself(v.Type()) {
		f.t.Fatalf("%q: %s encodes itself: give the test a value of it", path, v.Type())
	}
	switch v.Kind() {
	case reflect.Struct:
		f.setStruct(v, path)
	case reflect.Pointer:
		if slices.Contains(f.enclosing, v.Type().Elem()) {
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		f.set(v.Elem(), path)
	case reflect.Slice:
		if slices.Contains(f.enclosing, v.Type().Elem()) {
			return
		}
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		f.set(v.Index(0), path)
	case reflect.Array:
		for i := range v.Len() {
			f.set(v.Index(i), path)
		}
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		f.set(key, "key")
		f.set(value, path)
		v.SetMapIndex(key, value)
	case reflect.String:
		v.SetString(path)
	case reflect.Interface:
		v.Set(reflect.ValueOf(path))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		v.SetInt(number(path))
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(number(path))) //nolint:gosec // positive
	case reflect.Float32, reflect.Float64:
		v.SetFloat(float64(number(path)) + 0.5)
	default:
		f.t.Fatalf("%q: a %s is not stored", path, v.Type())
	}
}

func (f *filler) setStruct(v reflect.Value, path string) {
	f.enclosing = append(f.enclosing, v.Type())
	defer func() { f.enclosing = f.enclosing[:len(f.enclosing)-1] }()
	for i := range v.NumField() {
		field := v.Type().Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" || !field.IsExported() && !field.Anonymous || slices.Contains(f.enclosing, field.Type) {
			continue
		}
		if name == "" && !field.Anonymous {
			f.t.Fatalf("%s.%s: a field that is stored needs a name in JSON that does not depend on Go's", path, field.Name)
		}
		f.set(v.Field(i), strings.Trim(path+"."+name, "."))
	}
}

func (*filler) encodesItself(t reflect.Type) bool {
	return slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](), reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}, func(own reflect.Type) bool {
		return t.Implements(own) || t.Kind() != reflect.Pointer && reflect.PointerTo(t).Implements(own)
	})
}

func number(path string) int64 {
	h := fnv.New32a()
	_, _ = h.Write([]byte(path))
	return int64(h.Sum32()%100) + 1
}
