package pinned

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"scute.dev/eventlog"
)

const folder = "testdata/stored"

//nolint:gochecknoglobals // a flag of tests
var addFiles = flag.Bool("pinned.add", false, "package pinned: write a file for each type of which a field is in no file")

// Events checks the types of a catalog, in all versions that ever existed. values has a value for
// each Go type that this package cannot fill.
func Events[E any](t *testing.T, catalog *eventlog.Catalog[E], values ...any) {
	t.Helper()
	check(t, catalog.Types(), values, func(name string, data []byte) ([]byte, error) {
		fact, err := catalog.Decode(eventlog.Event{Type: name, Data: data})
		if err != nil {
			return nil, err
		}
		written, err := catalog.Encode(fact)
		if written.Type != name {
			return nil, err // an older version, which is only decoded
		}
		return written.Data, err
	})
}

// Records checks types that events contain as raw JSON, by name.
func Records(t *testing.T, types map[string]any, values ...any) {
	t.Helper()
	goTypes := make(map[string]reflect.Type)
	for name, v := range types {
		goTypes[name] = reflect.TypeOf(v)
	}
	check(t, goTypes, values, func(name string, data []byte) ([]byte, error) {
		goType, ok := goTypes[name]
		if !ok {
			return nil, fmt.Errorf("no type is called %q", name)
		}
		v := reflect.New(goType)
		d := json.NewDecoder(bytes.NewReader(data))
		d.DisallowUnknownFields()
		if err := d.Decode(v.Interface()); err != nil {
			return nil, err
		}
		return json.Marshal(v.Interface())
	})
}

func check(t *testing.T, goTypes map[string]reflect.Type, values []any, again func(name string, data []byte) ([]byte, error)) {
	t.Helper()
	known := make(map[string]map[string]bool) // by type, the fields in its files
	files, err := filepath.Glob(filepath.Join(folder, "*.json"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		name := typeOf(file)
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if known[name] == nil {
			known[name] = make(map[string]bool)
		}
		addFieldPaths("", parse(t, file, data), known[name])
		switch written, err := again(name, data); {
		case err != nil:
			t.Errorf("%s: it is in logs like this, and can no longer be read: %v", file, err)
		case written != nil && !reflect.DeepEqual(parse(t, file, data), parse(t, file, written)):
			t.Errorf("%s: it is in logs like this, and comes back as %s", file, written)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(goTypes)) {
		filled := marshal(t, fill(t, goTypes[name], values))
		now := make(map[string]bool)
		addFieldPaths("", parse(t, name, filled), now)
		var missing []string
		for field := range now {
			if !known[name][field] {
				missing = append(missing, field)
			}
		}
		slices.Sort(missing)
		switch {
		case len(missing) == 0 && known[name] != nil:
		case *addFiles:
			write(t, name, filled)
		default:
			t.Errorf("%s: no file of %s has the fields %q: when you are sure of them, run this test with -pinned.add", name, folder, missing)
		}
	}
}

// typeOf returns the type of TYPE.json, or of TYPE+2.json, which has fields that were added later.
func typeOf(file string) string {
	name, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(file), ".json"), "+")
	return name
}

func write(t *testing.T, name string, data []byte) {
	t.Helper()
	if err := os.MkdirAll(folder, 0o750); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, name+".json")
	for n := 2; ; n++ {
		if _, err := os.Stat(path); os.IsNotExist(err) {
			break
		}
		path = filepath.Join(folder, fmt.Sprintf("%s+%d.json", name, n))
	}
	writeIndented(t, path, data)
	t.Logf("%s is new: look at it, and commit it", path)
}

func writeIndented(t *testing.T, path string, data []byte) {
	t.Helper()
	var text bytes.Buffer
	if err := json.Indent(&text, data, "", "  "); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, append(text.Bytes(), '\n'), 0o600); err != nil {
		t.Fatal(err)
	}
}

func marshal(t *testing.T, v any) []byte {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func parse(t *testing.T, what string, data []byte) any {
	t.Helper()
	var v any
	if err := json.Unmarshal(data, &v); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return v
}

func addFieldPaths(path string, v any, into map[string]bool) {
	switch v := v.(type) {
	case map[string]any:
		for name, inner := range v {
			addFieldPaths(path+"."+name, inner, into)
		}
	case []any:
		for _, inner := range v {
			addFieldPaths(path+"[]", inner, into)
		}
	default:
		into[path] = true
	}
}
