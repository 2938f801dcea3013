package projection

import (
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"scute.dev/eventlog"
	"scute.dev/internal/usage"
)

// TestAnyDrops: wherever epochs are closed, however many years pass before one is, and whichever of them are dropped, once or twice, a view that begins
// with what is kept is what one is that has followed all along, at the end and at every commit before.
func TestAnyDrops(t *testing.T) {
	records := withClosings(t, 100)
	i := slices.IndexFunc(records, func(r eventlog.Record) bool { _, opens := r.OpensEpoch(); return opens })
	opens := records[i]
	records = slices.Delete(records, i, i+1)
	rapid.Check(t, func(rt *rapid.T) {
		at := rapid.SliceOfNDistinct(rapid.IntRange(0, len(records)), 1, 6, rapid.ID).Draw(rt, "closings")
		slices.Sort(at)
		var list []eventlog.Record
		var floors []uint64
		for i := range len(records) + 1 {
			if slices.Contains(at, i) {
				later := opens.Stored.AddDate(rapid.IntRange(0, 3).Draw(rt, "years"), 0, 0)
				header := maps.Clone(opens.Header())
				header["ce-time"] = []string{later.Format(time.RFC3339Nano)}
				list = append(list, eventlog.NewRecord(uint64(len(list)+1), later, opens.Subject(), header, opens.Data()))
				floors = append(floors, uint64(len(list)))
			}
			if i < len(records) {
				r := records[i]
				list = append(list, eventlog.NewRecord(uint64(len(list)+1), r.Stored, r.Subject(), r.Header(), r.Data()))
			}
		}
		remains := list
		drops := rapid.SliceOfNDistinct(rapid.SampledFrom(floors), 1, 2, rapid.ID).Draw(rt, "drops")
		slices.Sort(drops)
		for _, floor := range drops {
			remains = dropBelow(t, remains, floor)
		}
		last := drops[len(drops)-1]
		want, have := New(usage.Limits{}), New(usage.Limits{})
		fold(t, want, list[:last])
		n := slices.IndexFunc(remains, func(r eventlog.Record) bool { return r.Seq == last }) + 1
		fold(t, have, remains[:n])
		same(t, want, have)
		cut := rapid.IntRange(int(last), len(list)).Draw(rt, "cut") //nolint:gosec // a test's sequences
		fold(t, want, list[last:cut])
		fold(t, have, remains[n:n+cut-int(last)]) //nolint:gosec // a test's sequences
		same(t, want, have)
		fold(t, want, list[cut:])
		fold(t, have, remains[n+cut-int(last):]) //nolint:gosec // a test's sequences
		same(t, want, have)
	})
}

// dropBelow is what is kept of commits below one that opens an epoch, without tombstones, and all after it.
func dropBelow(t *testing.T, list []eventlog.Record, floor uint64) (out []eventlog.Record) {
	t.Helper()
	judge := New(usage.Limits{})
	for _, r := range list {
		if r.Seq <= floor {
			if err := judge.Apply(r); err != nil {
				t.Fatal(err)
			}
		}
	}
	open := make(map[eventlog.Aggregate]bool)
	if err := judge.Aggregates(func(a eventlog.Aggregate) { open[a] = true }); err != nil {
		t.Fatal(err)
	}
	for _, r := range list {
		if r.Seq >= floor || open[r.Aggregate] || !slices.Contains(Kinds(), r.Aggregate.Kind) {
			out = append(out, r)
		}
	}
	return out
}
