package eventlog

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go"
)

// TestStored checks that stored commits are read in all forms that logs contain, and written in the newest one. The
// files must never be changed. In the first form an event had an epoch, which is ignored.
func TestStored(t *testing.T) {
	at := time.Date(2026, 5, 1, 12, 0, 0, 500_000_000, time.UTC)
	event := Event{Type: "dev.scute.move.requested.v1", Time: at, Actor: "user/jo,hn", Causation: "c/0", Correlation: "fleet/prod", Data: json.RawMessage(`{"a":1}`)}
	other := Event{ID: "own", Type: "dev.scute.move.verified.v1", Time: at.Add(time.Nanosecond), Data: json.RawMessage(`{}`)}
	for name, c := range map[string]Commit{
		"single": {Events: []Event{event}},
		"batch":  {Events: []Event{event, other, other}},
	} {
		c.Aggregate, c.ID, c.Expected = Aggregate{Kind: KindMove, ID: "fleet/prod/1a2b3c4d"}, "commit 1", 7
		m, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		for i := range c.Events {
			c.Events[i].ID = c.EventID(i)
		}
		for _, form := range []string{"", "+2"} {
			stored, err := os.ReadFile(filepath.Join("testdata", "stored", name+form+".txt"))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(string(stored), text(m)); diff != "" && form == "+2" {
				t.Errorf("%s is not encoded in the stored form (-stored +encoded):\n%s", name, diff)
			}
			read, err := decode(message(t, stored))
			if err != nil {
				t.Fatalf("decode of %s%s: %v", name, form, err)
			}
			if diff := cmp.Diff(c.Events, read); diff != "" {
				t.Errorf("%s%s decodes to other events (-want +got):\n%s", name, form, diff)
			}
		}
	}
}

// text returns a message as text: subject, headers in alphabetical order, data.
func text(m *nats.Msg) string {
	var b strings.Builder
	fmt.Fprintln(&b, m.Subject)
	for _, name := range slices.Sorted(maps.Keys(m.Header)) {
		fmt.Fprintf(&b, "%s: %s\n", name, m.Header[name][0])
	}
	return b.String() + "\n" + string(m.Data) + "\n"
}

// message is the inverse of text.
func message(t *testing.T, stored []byte) (nats.Header, []byte) {
	t.Helper()
	head, data, ok := bytes.Cut(stored, []byte("\n\n"))
	if !ok {
		t.Fatal("the message has no empty line before its data")
	}
	h := make(nats.Header)
	for _, line := range strings.Split(string(head), "\n")[1:] {
		name, value, _ := strings.Cut(line, ": ")
		h[name] = []string{value}
	}
	return h, bytes.TrimSuffix(data, []byte("\n"))
}
