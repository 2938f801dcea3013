package audit

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

func sealed(seq uint64, id string) seal.Message {
	return seal.Message{Seq: seq, Stored: time.Unix(int64(seq), 0), Subject: "scute.log.move." + id, Header: map[string][]string{"Nats-Msg-Id": {fmt.Sprint(seq)}}, Data: []byte("{}")} //nolint:gosec // small
}

func tombstone(m seal.Message) seal.Message { return seal.MessageOf(m.Record().Tombstone()) }

// TestRemains: whatever is changed, removed or swapped of what a log has kept of dropped epochs shows in a comparison with their archive.
func TestRemains(t *testing.T) {
	// "back" had ended by an earlier drop, and began again after it.
	archive := []seal.Message{sealed(1, "ended"), sealed(2, "open"), sealed(3, "ended"), sealed(4, "back"), sealed(5, "open"), sealed(6, "back"), sealed(7, "open")}
	honest := func() map[uint64]seal.Message {
		return map[uint64]seal.Message{2: archive[1], 3: tombstone(archive[2]), 4: tombstone(archive[3]), 5: archive[4], 6: archive[5], 7: archive[6]}
	}
	for name, c := range map[string]struct {
		tamper func(kept map[uint64]seal.Message)
		want   string
	}{
		"nothing":                         {func(map[uint64]seal.Message) {}, ""},
		"changed commit":                  {func(k map[uint64]seal.Message) { m := k[5]; m.Data = []byte("[]"); k[5] = m }, "changed 5"},
		"changed tombstone":               {func(k map[uint64]seal.Message) { m := k[3]; m.Subject += "x"; k[3] = m }, "changed 3"},
		"removed tombstone":               {func(k map[uint64]seal.Message) { delete(k, 3) }, "missing 3"},
		"removed first commit":            {func(k map[uint64]seal.Message) { delete(k, 2) }, "missing 2"},
		"removed last commit":             {func(k map[uint64]seal.Message) { delete(k, 7) }, "missing 7"},
		"removed object":                  {func(k map[uint64]seal.Message) { delete(k, 2); delete(k, 5); delete(k, 7) }, "missing 7"},
		"removed tombstone before others": {func(k map[uint64]seal.Message) { delete(k, 4) }, "missing 4"},
		"tombstone for a commit":          {func(k map[uint64]seal.Message) { k[7] = tombstone(k[7]) }, "changed 7"},
		"commit for a tombstone":          {func(k map[uint64]seal.Message) { k[3] = archive[2] }, "missing 1"},
		"added commit":                    {func(k map[uint64]seal.Message) { k[8] = sealed(8, "open") }, "added 8"},
	} {
		kept, k := honest(), newRemains()
		c.tamper(kept)
		for _, m := range kept {
			k.add(m)
		}
		for _, m := range archive {
			k.compare(m)
		}
		var got []string
		for _, f := range k.findings() {
			words, _, _ := strings.Cut(f.String(), ":")
			got = append(got, words)
		}
		if s := strings.Join(got, ", "); s != c.want {
			t.Errorf("%s: %q, want %q", name, s, c.want)
		}
	}
}

// TestDrops: a floor that the log does not record is no reason to call what is below it dropped.
func TestDrops(t *testing.T) {
	sum := new(seal.Sum)
	sum.Add(sealed(1, "a"))
	sum.Add(sealed(2, "b"))
	floor := func() *eventlog.Floor {
		return &eventlog.Floor{Through: 1, Seq: 3, First: 1, Commits: 1, Tombstones: 1, Edge: sum.Edge(), Stream: "SCUTE_KEPT_1_00"}
	}
	event, err := eventlog.NewEpochCatalog().Encode(eventlog.EpochsDropped{
		Through: 1, Floor: 3, Root: sum.Checkpoint("").Root.String(), Kept: "SCUTE_KEPT_1_00", Commits: 1, Tombstones: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	record := seal.Message{Seq: 4, Subject: eventlog.Drops().Subject(), Data: event.Data, Header: map[string][]string{
		"ce-type": {event.Type}, "ce-id": {"1"}, "ce-specversion": {"1.0"}, "ce-source": {"test"}, "ce-time": {"2026-03-04T05:06:07Z"}, "ce-datacontenttype": {"application/json"},
	}}
	for name, c := range map[string]struct {
		recorded bool
		size     uint64
		tamper   func(f *eventlog.Floor)
		want     string
	}{
		"honest":      {true, 4, nil, ""},
		"not sealed":  {true, 3, nil, "commit 4, which records"},
		"no record":   {false, 4, nil, "missing 1-2: no commit of the log records"},
		"other floor": {true, 4, func(f *eventlog.Floor) { f.Seq = 2; f.Edge = f.Edge[:1] }, "missing 1: no commit of the log records"},
		"fewer":       {true, 4, func(f *eventlog.Floor) { f.Tombstones-- }, "altered 1-2: what the log says"},
		"other epoch": {true, 4, func(f *eventlog.Floor) { f.Through = 7 }, "altered 1-2: what the log says"},
		"other name":  {true, 4, func(f *eventlog.Floor) { f.Stream = "SCUTE_KEPT_1_01" }, "altered 1-2: what the log says"},
		"other edge":  {true, 4, func(f *eventlog.Floor) { f.Edge[0][0]++ }, "altered 1-2: what the log says"},
	} {
		f, d, report := floor(), newDrops(), seal.Report{Size: c.size}
		if c.tamper != nil {
			c.tamper(f)
		}
		if c.recorded {
			d.take(record)
		}
		if err := d.judge(f, &report); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(report.Notes, "")
		for _, finding := range report.Findings {
			got += finding.String()
		}
		if !strings.HasPrefix(got, c.want) || c.want == "" && got != "" {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
