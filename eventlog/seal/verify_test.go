package seal

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"golang.org/x/mod/sumdb/tlog"
	"pgregory.net/rapid"

	"scute.dev/eventlog"
)

// message returns the n-th commit of a generated log.
func message(n uint64) eventlog.Record { return messageWith(n, fmt.Appendf(nil, `{"n":%d}`, n)) }

func messageWith(n uint64, data []byte) eventlog.Record {
	return eventlog.NewRecord(n, time.Unix(1_800_000_000, int64(n)).UTC(), fmt.Sprintf("scute.log.move.a%d", n%7), //nolint:gosec // small
		map[string][]string{"ce-id": {fmt.Sprint(n)}, "Nats-Msg-Id": {fmt.Sprintf("m/%d", n)}}, data)
}

func messages(n int) []eventlog.Record {
	out := make([]eventlog.Record, n)
	for i := range out {
		out[i] = message(uint64(i + 1)) //nolint:gosec // small
	}
	return out
}

// sealMessages returns the tree of some commits, stored in dir, and its checkpoint.
func sealMessages(t testing.TB, dir string, of []eventlog.Record) (*Tree, Checkpoint) {
	t.Helper()
	tree, err := OpenTree(dir, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tree.Close() })
	var h Hasher
	for _, m := range of {
		if err := tree.Append(h.Hash(m)); err != nil {
			t.Fatal(err)
		}
	}
	if err := tree.Sync(); err != nil {
		t.Fatal(err)
	}
	return tree, checkpointAt(t, tree, tree.Size())
}

func checkpointAt(t testing.TB, tree *Tree, size uint64) Checkpoint {
	t.Helper()
	root, err := tree.Root(size)
	if err != nil {
		t.Fatal(err)
	}
	return Checkpoint{LogID: "0123456789abcdef", Size: size, Root: root}
}

func verify(t testing.TB, want Checkpoint, earlier []Checkpoint, tree *Tree, found []eventlog.Record) Report {
	t.Helper()
	v := NewVerifier(want, earlier, tree)
	for _, m := range found {
		if err := v.Add(m); err != nil {
			t.Fatal(err)
		}
	}
	r, err := v.Report()
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// renumber sets the sequences of commits to their positions.
func renumber(list []eventlog.Record) []eventlog.Record {
	list = slices.Clone(list)
	for i := range list {
		list[i].Seq = uint64(i + 1) //nolint:gosec // small
	}
	return list
}

func forgedMessage(seq uint64) eventlog.Record { return messageWith(seq, []byte(`{"forged":true}`)) }

// TestLocate changes a log of 40 commits in various ways, and checks the findings with the leaf hashes, with earlier
// checkpoints, and with the last checkpoint alone.
func TestLocate(t *testing.T) {
	original := messages(40)
	tree, want := sealMessages(t, t.TempDir(), original)
	earlier := []Checkpoint{checkpointAt(t, tree, 10), checkpointAt(t, tree, 20), checkpointAt(t, tree, 30)}
	swapped := slices.Clone(original)
	swapped[4], swapped[29] = original[29], original[4]
	one := func(seq uint64, m eventlog.Record) []eventlog.Record {
		list := slices.Clone(original)
		list[seq-1] = m
		return list
	}
	for _, c := range []struct {
		name                  string
		found                 []eventlog.Record
		leaves, marks, nolean string
	}{
		{"intact", original, "[]", "[]", "[]"},
		{"more after it", append(slices.Clone(original), message(41), message(42)), "[]", "[]", "[]"},
		{"one changed", one(17, forgedMessage(17)), "[changed 17]", "[altered 11-20 unverified 21-40]", "[altered 1-40]"},
		{"two swapped", renumber(swapped), "[changed 5 changed 30]", "[altered 1-10 unverified 11-40]", "[altered 1-40]"},
		{
			"one removed, with a gap", slices.Delete(slices.Clone(original), 11, 12), "[missing 12]",
			"[unverified 11 missing 12 unverified 13-40]", "[unverified 1-11 missing 12 unverified 13-40]",
		},
		{
			"one removed, the others moved up", renumber(slices.Delete(slices.Clone(original), 11, 12)),
			"[changed 12-39 missing 40]", "[altered 11-20 unverified 21-39 missing 40]", "[unverified 1-39 missing 40]",
		},
		{
			"one added, the others moved down", renumber(slices.Insert(slices.Clone(original), 11, forgedMessage(12))),
			"[changed 12-40]", "[altered 11-20 unverified 21-40]", "[altered 1-40]",
		},
		{"the tail cut off", original[:33], "[missing 34-40]", "[unverified 31-33 missing 34-40]", "[unverified 1-33 missing 34-40]"},
		{"the tail forged", append(slices.Clone(original[:37]), forgedMessage(38), forgedMessage(39), forgedMessage(40), forgedMessage(41)), "[changed 38-40]", "[altered 31-40]", "[altered 1-40]"},
		{"the beginning cut off", original[5:], "[missing 1-5]", "[missing 1-5 unverified 6-40]", "[missing 1-5 unverified 6-40]"},
		{"nothing left", nil, "[missing 1-40]", "[missing 1-40]", "[missing 1-40]"},
		{
			"one there twice", slices.Insert(slices.Clone(original), 8, original[7]), "[reordered 8: it comes after 8]",
			"[reordered 8: it comes after 8]", "[reordered 8: it comes after 8]",
		},
		{
			"lines exchanged", slices.Concat(original[:5], original[6:7], original[5:6], original[7:]), "[missing 6 reordered 6: it comes after 7]",
			"[unverified 1-5 missing 6 reordered 6: it comes after 7 unverified 7-40]", "[unverified 1-5 missing 6 reordered 6: it comes after 7 unverified 7-40]",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, with := range []struct {
				earlier []Checkpoint
				tree    *Tree
				want    string
			}{{nil, tree, c.leaves}, {earlier, nil, c.marks}, {nil, nil, c.nolean}} {
				if got := fmt.Sprint(verify(t, want, with.earlier, with.tree, c.found).Findings); got != with.want {
					t.Errorf("with %d earlier checkpoints and leaf hashes %t:\n got %s\nwant %s", len(with.earlier), with.tree != nil, got, with.want)
				}
			}
		})
	}
}

// TestTwoHistories checks that two histories with the same key are reported, whatever follows the checkpoint.
func TestTwoHistories(t *testing.T) {
	original := messages(40)
	tree, want := sealMessages(t, t.TempDir(), original)
	_, other := sealMessages(t, t.TempDir(), []eventlog.Record{forgedMessage(1)})
	for _, list := range [][]eventlog.Record{original, append(slices.Clone(original), message(42))} {
		for _, with := range []*Tree{tree, nil} {
			if r := verify(t, want, []Checkpoint{other}, with, list); len(r.Findings) != 1 || r.Findings[0].Kind != kindAltered {
				t.Errorf("%d commits: findings are %v", len(list), r.Findings)
			}
		}
	}
}

// TestAnyChange changes random logs at random. Verification must report each changed log, and with the leaf hashes
// report exactly the sequences that differ.
func TestAnyChange(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		original := messages(rapid.IntRange(1, 70).Draw(rt, "size"))
		tree, want := sealMessages(t, t.TempDir(), original)
		list := slices.Clone(original)
		for range rapid.IntRange(1, 4).Draw(rt, "changes") {
			at := rapid.IntRange(0, max(len(list)-1, 0)).Draw(rt, "at")
			switch kind := rapid.SampledFrom([]string{"change", "remove", "add", "swap"}).Draw(rt, "kind"); {
			case kind == "add" || len(list) == 0:
				list = slices.Insert(list, at, forgedMessage(uint64(rapid.IntRange(1000, 2000).Draw(rt, "n")))) //nolint:gosec // small
			case kind == "change":
				list[at] = forgedMessage(uint64(rapid.IntRange(1000, 2000).Draw(rt, "n"))) //nolint:gosec // small
			case kind == "remove":
				list = slices.Delete(list, at, at+1)
			default:
				other := rapid.IntRange(0, len(list)-1).Draw(rt, "other")
				list[at], list[other] = list[other], list[at]
			}
		}
		list = renumber(list)
		var h Hasher
		differs := map[uint64]bool{}
		for seq := range want.Size {
			if int(seq) >= len(list) || h.Hash(list[seq]) != h.Hash(original[seq]) { //nolint:gosec // small
				differs[seq+1] = true
			}
		}
		for _, with := range []*Tree{tree, nil} {
			r := verify(t, want, nil, with, list)
			if r.Intact() != (len(differs) == 0) {
				rt.Fatalf("%d sequences differ, findings are %v", len(differs), r.Findings)
			}
			for seq := range differs {
				if !slices.ContainsFunc(r.Findings, func(f Finding) bool {
					return f.First <= seq && seq <= f.Last
				}) {
					rt.Fatalf("sequence %d differs but is in no finding: %v", seq, r.Findings)
				}
			}
			if with == nil {
				continue
			}
			for _, f := range r.Findings {
				for seq := f.First; seq <= min(f.Last, want.Size); seq++ {
					if !differs[seq] {
						rt.Fatalf("sequence %d is unchanged but reported as %s: %v", seq, f.Kind, r.Findings)
					}
				}
			}
		}
	})
}

// TestTreeIsRFC6962 compares the tree with the one of package tlog.
func TestTreeIsRFC6962(t *testing.T) {
	const n = 300
	tree, _ := sealMessages(t, t.TempDir(), messages(n))
	var stored []tlog.Hash
	reader := tlog.HashReaderFunc(func(indexes []int64) ([]tlog.Hash, error) {
		out := make([]tlog.Hash, len(indexes))
		for i, x := range indexes {
			out[i] = stored[x]
		}
		return out, nil
	})
	for i := range int64(n) {
		hashes, err := tlog.StoredHashes(i, AppendLeaf(nil, message(uint64(i+1))), reader) //nolint:gosec // small
		if err != nil {
			t.Fatal(err)
		}
		stored = append(stored, hashes...)
		want, err := tlog.TreeHash(i+1, reader)
		if err != nil {
			t.Fatal(err)
		}
		if got := checkpointAt(t, tree, uint64(i+1)).Root; got != want { //nolint:gosec // small
			t.Fatalf("root of %d commits = %s, want %s", i+1, got, want)
		}
	}
}
