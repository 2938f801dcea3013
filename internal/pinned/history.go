package pinned

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
)

// histories is where a package under test stores what real objects did: the events of one in a line each, as `scutectl
// log tail -o json` prints them, and beside it the state that they lead to.
const histories = "testdata/histories"

// History is an event of a saved history, and when it was.
type History[E any] struct {
	Event E
	At    time.Time
}

// Histories replays saved histories: each must lead to the same status as when it was saved. status returns it, as it
// is shown to users. The words in it (message, next) may change.
func Histories[E any](t *testing.T, catalog *eventlog.Catalog[E], status func(t *testing.T, events []History[E]) any) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(histories, "*.jsonl"))
	if err != nil || len(list) == 0 {
		t.Fatalf("%s has no history: %v", histories, err)
	}
	for _, file := range list {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			got := parse(t, file, marshal(t, status(t, history(t, catalog, file))))
			wordless(got)
			name := strings.TrimSuffix(file, ".jsonl") + ".status.json"
			saved, err := os.ReadFile(name)
			if os.IsNotExist(err) && *add {
				var text bytes.Buffer
				if err := json.Indent(&text, marshal(t, got), "", "  "); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, append(text.Bytes(), '\n'), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(parse(t, name, saved), got) {
				t.Errorf("it leads to another status than %s: %s", name, marshal(t, got))
			}
		})
	}
}

func history[E any](t *testing.T, catalog *eventlog.Catalog[E], file string) []History[E] {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var events []History[E]
	lines := bufio.NewScanner(bytes.NewReader(data))
	lines.Buffer(nil, 4<<20)
	for lines.Scan() {
		var line struct {
			Type string          `json:"type"`
			Time time.Time       `json:"time"`
			Data json.RawMessage `json:"data"`
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		event, err := catalog.Decode(eventlog.Event{Type: line.Type, Time: line.Time, Data: line.Data})
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, History[E]{Event: event, At: line.Time})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return events
}

// wordless takes out what is written for people.
func wordless(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "message")
		delete(v, "next")
		for _, inner := range v {
			wordless(inner)
		}
	case []any:
		for _, inner := range v {
			wordless(inner)
		}
	}
}
