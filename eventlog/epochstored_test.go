package eventlog

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/nats-io/nats.go/jetstream"
)

// TestStoredEpochs holds what the log says of its epochs, and a commit that follows one of a closed epoch, to the form that logs have
// them in. It is never changed.
func TestStoredEpochs(t *testing.T) {
	catalog := NewEpochCatalog()
	for data, fact := range map[string]EpochEvent{
		`{"epoch":1,"stream":"SCUTE","next":"SCUTE_2","reason":"end of 2026"}`:                    EpochClosed{Epoch: 1, Stream: "SCUTE", Next: "SCUTE_2", Reason: "end of 2026"},
		`{"epoch":2,"stream":"SCUTE_2","previous":"SCUTE","last":41,"commit":"0123456789abcdef"}`: EpochOpened{Epoch: 2, Stream: "SCUTE_2", Previous: "SCUTE", Last: 41, Commit: "0123456789abcdef"},
		`{"epoch":1,"reason":"end of 2026"}`:                                                      CloseRequested{Epoch: 1, Reason: "end of 2026"},
		`{"epoch":1,"message":"no room"}`:                                                         CloseRefused{Epoch: 1, Message: "no room"},
		`{"kept":"SCUTE_KEPT_2_0123456789abcdef"}`:                                                DropAbandoned{Kept: "SCUTE_KEPT_2_0123456789abcdef"},
		`{"through":2,"floor":42,"root":"cm9vdA==","kept":"SCUTE_KEPT_2_0123456789abcdef","commits":7,"tombstones":3,"archive":{"last":50,"root":"bGFzdA==","taken":"2026-01-01T00:00:00Z"},"reason":"old"}`: EpochsDropped{
			Through: 2, Floor: 42, Root: "cm9vdA==", Kept: "SCUTE_KEPT_2_0123456789abcdef", Commits: 7, Tombstones: 3,
			Archive: Archived{Last: 50, Root: "bGFzdA==", Taken: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)}, Reason: "old",
		},
	} {
		ev, err := catalog.Encode(fact)
		if err != nil || string(ev.Data) != data {
			t.Errorf("%s, %v, want %s", ev.Data, err, data)
		}
		if back, err := catalog.Decode(Event{Type: ev.Type, Data: json.RawMessage(data)}); err != nil || back != fact {
			t.Errorf("%+v, %v, want %+v", back, err, fact)
		}
	}
	second := streamSpec{name: "SCUTE", epoch: 2, first: 40}
	for expected, want := range map[uint64]map[string]string{
		0:  {jetstream.ExpectedLastSubjSeqHeader: "0"},
		7:  {jetstream.ExpectedLastSubjSeqHeader: "0", headerFollows: "7"},
		41: {jetstream.ExpectedLastSubjSeqHeader: "41"},
	} {
		c := Commit{
			Aggregate: Aggregate{Kind: KindMove, ID: "fleet/prod"}, ID: "1", Expected: expected, Events: []Event{{Type: "dev.scute.move.verified.v1", Data: []byte(`{}`)}},
		}
		m, err := c.encode()
		if err != nil {
			t.Fatal(err)
		}
		before := m.Header[jetstream.ExpectedLastSubjSeqHeader][0]
		epoch{}.address(m, c)
		if m.Subject != c.Aggregate.Subject() || m.Header[jetstream.ExpectedLastSubjSeqHeader][0] != before || m.Header[headerFollows] != nil {
			t.Errorf("the first epoch changes the message: %s, %v", m.Subject, m.Header)
		}
		epoch{spec: second}.address(m, c)
		if want := "scute.log.2.move.fleet_2fprod"; m.Subject != want || second.stream() != "SCUTE_2" {
			t.Errorf("%s, want %s", m.Subject, want)
		}
		got := map[string]string{}
		for name, values := range m.Header {
			if !strings.HasPrefix(name, "ce-") && name != jetstream.MsgIDHeader {
				got[name] = values[0]
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("expecting %d (-want +got):\n%s", expected, diff)
		}
		if f, ok := NewRecord(50, time.Unix(50, 0), c.Aggregate.Subject(), m.Header, m.Data).follows(); !ok || f != expected {
			t.Errorf("it follows %d, want %d", f, expected)
		}
	}
}
