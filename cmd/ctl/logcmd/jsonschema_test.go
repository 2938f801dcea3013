package logcmd

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"

	"scute.dev/cmd/ctl/kit"
)

// TestStoredData checks that the schema of each event type allows the stored data of that type, and no unknown fields.
func TestStoredData(t *testing.T) {
	t.Parallel()
	stored, err := filepath.Glob("../../../*/testdata/stored/*.json")
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob("../../../*/*/testdata/stored/*.json")
	if err != nil {
		t.Fatal(err)
	}
	tried := make(map[string]bool)
	types := kit.EventTypes()
	for _, path := range append(stored, more...) {
		eventType := strings.TrimSuffix(filepath.Base(path), ".json")
		data, current := types[eventType]
		if !current {
			continue // an older version
		}
		tried[eventType] = true
		t.Run(eventType, func(t *testing.T) {
			t.Parallel()
			checkSchema(t, path, eventType, data)
		})
	}
	for eventType := range types {
		if !tried[eventType] && !strings.HasPrefix(eventType, "dev.scute.daemon.") {
			t.Errorf("type %s has no stored data", eventType)
		}
	}
}

func checkSchema(t *testing.T, path, eventType string, data reflect.Type) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var value any
	if err := json.Unmarshal(text, &value); err != nil {
		t.Fatal(err)
	}
	s, err := jsonSchema(eventType, data)
	if err != nil {
		t.Fatal(err)
	}
	resolved, err := s.Resolve(&jsonschema.ResolveOptions{ValidateDefaults: true})
	if err != nil {
		t.Fatal(err)
	}
	if err := resolved.Validate(value); err != nil {
		t.Errorf("%s: %v", text, err)
	}
	if fields, is := value.(map[string]any); is {
		fields["noSuchField"] = true
		if err := resolved.Validate(value); err == nil {
			t.Error("the schema allows a field that the type does not have")
		}
	}
}
