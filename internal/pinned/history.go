package pinned

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
)

// histories is the folder of saved histories. Each has a file with the events of a real object, one
// per line, as `scutectl log tail -o json` prints them, and a file with the resulting state.
const histories = "testdata/histories"

// History is an event of a saved history, with its time.
type History[E any] struct {
	Event E
	At    time.Time
}

// Histories replays saved histories: each must result in its saved status. status returns the
// status as users see it; its messages (message, next) may change.
func Histories[E any](t *testing.T, catalog *eventlog.Catalog[E], status func(t *testing.T, events []History[E]) any) {
	t.Helper()
	list, err := filepath.Glob(filepath.Join(histories, "*.jsonl"))
	if err != nil || len(list) == 0 {
		t.Fatalf("%s has no history: %v", histories, err)
	}
	for _, file := range list {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".jsonl"), func(t *testing.T) {
			got := parse(t, file, marshal(t, status(t, history(t, catalog, file))))
			removeMessages(got)
			name := strings.TrimSuffix(file, ".jsonl") + ".status.json"
			saved, err := os.ReadFile(name)
			if os.IsNotExist(err) && *addFiles {
				writeIndented(t, name, marshal(t, got))
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
	stored, err := Load(file)
	if err != nil {
		t.Fatal(err)
	}
	events := make([]History[E], len(stored))
	for i, ev := range stored {
		event, err := catalog.Decode(ev)
		if err != nil {
			t.Fatal(err)
		}
		events[i] = History[E]{Event: event, At: ev.Time}
	}
	return events
}

// Load reads the events of a saved history.
func Load(file string) ([]eventlog.Event, error) {
	f, err := os.Open(file) //nolint:gosec // a file of the repository
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var events []eventlog.Event
	for lines := json.NewDecoder(f); ; {
		var line struct {
			Type  string          `json:"type"`
			Time  time.Time       `json:"time"`
			Actor string          `json:"actor"`
			Data  json.RawMessage `json:"data"`
		}
		switch err := lines.Decode(&line); {
		case errors.Is(err, io.EOF):
			return events, nil
		case err != nil:
			return nil, fmt.Errorf("%s: event %d: %w", file, len(events), err)
		}
		events = append(events, eventlog.Event{Type: line.Type, Time: line.Time, Actor: line.Actor, Data: line.Data})
	}
}

func removeMessages(v any) {
	switch v := v.(type) {
	case map[string]any:
		delete(v, "message")
		delete(v, "next")
		for _, inner := range v {
			removeMessages(inner)
		}
	case []any:
		for _, inner := range v {
			removeMessages(inner)
		}
	}
}
