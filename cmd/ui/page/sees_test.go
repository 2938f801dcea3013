package page_test

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"testing"

	"scute.dev/cmd/ui/uitest"
	"scute.dev/cmd/ui/world"
	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// only sees what is in one namespace.
func only(namespace string) func(eventlog.Aggregate) bool {
	return func(a eventlog.Aggregate) bool { return strings.HasPrefix(a.ID, namespace+"/") }
}

// TestNothingOfAnotherIsShown draws every page, whole and the part that follows the log, now and at every moment, for somebody who sees one
// of two namespaces. It is byte for byte as if the commits on the other one were not in the log, with
// commits in their places of which scute knows nothing.
func TestNothingOfAnotherIsShown(t *testing.T) {
	names := []string{"rolled-back", "target-wiped", "two-of-five", "timed-out", "mass-failure"}
	log := logtest.Open(t)
	theirs := uitest.Saved(t, root, names...)
	for _, h := range theirs {
		h.Of.ID = strings.Replace(h.Of.ID, "fleet/", "other/", 1)
	}
	uitest.Interleaved(t, log, append(uitest.Saved(t, root, names...), theirs...))
	f, g := uitest.Feed(t), uitest.Feed(t)
	uitest.Fill(t, f, log)
	err := f.Commits.Replay(0, f.Commits.Head(), func(r eventlog.Record) error {
		if !only("fleet")(r.Aggregate) {
			r = eventlog.NewRecord(r.Seq, r.Stored, "another.program", nil, []byte("hi"))
		}
		return g.Take(r)
	})
	if err != nil {
		t.Fatal(err)
	}
	limited, all, want := site(t, f).For(only("fleet")), site(t, f), site(t, g).For(only("fleet"))
	shown := addresses(t, f)
	shown = append(shown, "/facts?text=other", "/facts?kind=run", "/facts?actor=a")
	differs := 0
	for _, address := range shown {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		moments := []string{u.Query().Get("at")}
		if moments[0] == "" {
			for seq := uint64(1); seq <= f.Commits.Head()+1; seq += 3 {
				moments = append(moments, fmt.Sprint(seq))
			}
			moments = append(moments, uitest.Stored(7).Format("2006-01-02T15:04:05Z"))
		}
		for _, at := range moments {
			q := u.Query()
			q.Del("at")
			if at != "" {
				q.Set("at", at)
			}
			for _, part := range []bool{false, true} {
				got, gotSeq, gotErr := limited.Page(u.Path, q, part)
				same, sameSeq, sameErr := want.Page(u.Path, q, part)
				if string(got) != string(same) || gotSeq != sameSeq || fmt.Sprint(gotErr) != fmt.Sprint(sameErr) {
					t.Fatalf("%s at %q shows that there is something else: %v\n%s\nwant: %v\n%s", address, at, gotErr, got, sameErr, same)
				}
				if gotErr != nil && !errors.Is(gotErr, world.ErrNotFound) {
					t.Errorf("%s at %q: %v", address, at, gotErr)
				}
				if whole, _, err := all.Page(u.Path, q, part); err == nil && string(whole) != string(got) {
					differs++
				}
			}
		}
	}
	if differs == 0 {
		t.Error("who sees everything sees nothing else: the test shows nothing")
	}
}

// TestWhoSeesNothing is shown no number of the log, and no proof.
func TestWhoSeesNothing(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	uitest.Histories(t, log, root, "rolled-back")
	uitest.Fill(t, f, log)
	s := site(t, f).For(only("nobody"))
	for _, address := range []string{"/", "/fleet", "/facts"} {
		if body := show(t, s, address); !strings.Contains(body, "Up to commit 0<") || strings.Contains(body, "rolled-back") {
			t.Errorf("%s:\n%s", address, body)
		}
	}
	for _, seq := range []uint64{1, f.Commits.Head() + 1} {
		if _, err := s.Prove(t.Context(), seq); !errors.Is(err, world.ErrNotFound) || strings.Contains(err.Error(), "last one") {
			t.Errorf("the proof of commit %d: %v", seq, err)
		}
	}
}

// TestWhereTheLogEndsIsNotShown: the pages end with the last commit that may be seen, and an event that may not be seen is not found as one
// that is not there.
func TestWhereTheLogEndsIsNotShown(t *testing.T) {
	log, f := logtest.Open(t), uitest.Feed(t)
	uitest.Histories(t, log, root, "rolled-back")
	theirs := uitest.Saved(t, root, "timed-out")
	theirs[0].Of.ID = "other/timed-out/1"
	uitest.Fill(t, f, log)
	last := f.Commits.Head()
	uitest.Interleaved(t, log, theirs)
	uitest.Fill(t, f, log)
	head, s := f.Commits.Head(), site(t, f).For(only("fleet"))
	for _, address := range []string{"/", "/facts", "/fleet", fmt.Sprintf("/facts?at=%d", head), fmt.Sprintf("/?at=%d", head+9)} {
		if body := show(t, s, address); !strings.Contains(body, fmt.Sprintf(`max="%d" value="%d"`, last, last)) || strings.Contains(body, "The commit after") {
			t.Errorf("%s does not end with commit %d:\n%s", address, last, body)
		}
	}
	for _, at := range []uint64{last + 1, head, head + 9} {
		if _, _, err := s.Page("/event", url.Values{"at": {fmt.Sprint(at)}}, false); !errors.Is(err, world.ErrNotFound) || !strings.HasSuffix(err.Error(), fmt.Sprintf("commit %d", at)) {
			t.Errorf("the event of commit %d: %v", at, err)
		}
	}
}
