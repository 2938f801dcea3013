package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
	"scute.dev/eventlog/seal"
)

func closeEpoch(t *testing.T, l *eventlog.Log) {
	t.Helper()
	if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test", Reason: "the year is over", Time: decided}); err != nil {
		t.Fatal(err)
	}
}

// sequences are those of the commits that a replay gives, and what they are called.
func replayed(t *testing.T, l *eventlog.Log, after uint64) (out []string) {
	t.Helper()
	if _, err := l.Replay(t.Context(), after, func(r eventlog.Record) error {
		if want := after + uint64(len(out)) + 1; r.Seq != want {
			t.Errorf("commit %d comes at %d", r.Seq, want)
		}
		out = append(out, fmt.Sprintf("%d %s %s", r.Seq, r.Aggregate, r.CommitID))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestEpochs: a log of many epochs is appended to, read, replayed and followed as one, and continues so when it is opened again.
func TestEpochs(t *testing.T) {
	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	if err := l.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/test"}); !errors.Is(err, eventlog.ErrEmptyEpoch) {
		t.Errorf("an epoch without commits is closed: %v", err)
	}
	ctx, cancel := context.WithCancel(within(t, time.Minute))
	var followed []string
	done := make(chan error, 1)
	more := make(chan struct{}, 1000)
	go func() {
		done <- l.Follow(ctx, 0, func(r eventlog.Record) error {
			followed = append(followed, fmt.Sprintf("%d %s %s", r.Seq, r.Aggregate, r.CommitID))
			more <- struct{}{}
			return nil
		})
	}()
	const epochs = 4
	ids := []string{"old"}
	mustAppend(t, l, commit(moveOf("old"), "1", 0, 1))
	last := uint64(0)
	var chain []uint64
	for n := range epochs {
		id := fmt.Sprintf("m%d", n)
		ids = append(ids, id)
		mustAppend(t, l, commit(moveOf(id), "1", 0, 2))
		last = mustAppend(t, l, commit(moveOf("long"), fmt.Sprint(n), last, 1))
		chain = append(chain, last)
		if n < epochs-1 {
			closeEpoch(t, l)
		}
	}
	check := func(l *eventlog.Log) {
		t.Helper()
		head, err := l.Head(t.Context())
		if err != nil || head != 1+epochs*2+(epochs-1)*2 {
			t.Fatalf("the log ends at %d, %v", head, err)
		}
		if s, err := l.Stats(t.Context()); err != nil || s.Commits != head {
			t.Errorf("%+v, %v", s, err)
		}
		records, err := l.Read(t.Context(), moveOf("long"), 0)
		if err != nil || len(records) != len(chain) {
			t.Fatalf("%v, %v", records, err)
		}
		for i, r := range records {
			if r.Seq != chain[i] {
				t.Errorf("commit %d is at %d, was stored at %d", i, r.Seq, chain[i])
			}
			if at, err := l.At(t.Context(), r.Seq); err != nil || at.Fingerprint() != r.Fingerprint() || at.Subject() != moveOf("long").Subject() {
				t.Errorf("%+v, %v", at, err)
			}
		}
		if part, err := l.Read(t.Context(), moveOf("long"), chain[1]); err != nil || len(part) != len(chain)-2 {
			t.Errorf("%v, %v", part, err)
		}
		all := replayed(t, l, 0)
		if uint64(len(all)) != head {
			t.Errorf("%d of %d commits", len(all), head)
		}
		if tail := replayed(t, l, chain[1]); !slices.Equal(tail, all[chain[1]:]) {
			t.Errorf("after %d: %q", chain[1], tail)
		}
		var scanned []string
		if err := l.Scan(t.Context(), func(r eventlog.Record) error {
			scanned = append(scanned, fmt.Sprintf("%d %s %s", r.Seq, r.Aggregate, r.CommitID))
			return nil
		}); err != nil || !slices.Equal(scanned, all) {
			t.Errorf("scanned %q, %v", scanned, err)
		}
		for _, id := range ids {
			// What is in a closed epoch is not begun again, and appending it again finds it.
			_, err := l.Append(t.Context(), commit(moveOf(id), "another", 0, 1))
			wantErr(t, err, eventlog.ErrConflict)
		}
		if r, err := l.Append(t.Context(), commit(moveOf("old"), "1", 0, 1)); err != nil || r.Seq != 1 || !r.AlreadyStored {
			t.Errorf("%+v, %v", r, err)
		}
		if r, err := l.Append(t.Context(), commit(moveOf("long"), "1", chain[0], 1)); err != nil || r.Seq != chain[1] || !r.AlreadyStored {
			t.Errorf("%+v, %v", r, err)
		}
		_, err = l.Append(t.Context(), commit(moveOf("old"), "2", 3, 1))
		wantErr(t, err, eventlog.ErrConflict)
		_, err = l.Append(t.Context(), commit(moveOf("never"), "2", 3, 1))
		wantErr(t, err, eventlog.ErrConflict)
		listed, err := l.Epochs(t.Context())
		if err != nil || len(listed) != epochs {
			t.Fatalf("%+v, %v", listed, err)
		}
		for i, e := range listed {
			if e.Number != i+1 || e.Closed != (i < epochs-1) || e.Bytes == 0 || i > 0 && e.First != listed[i-1].Last+1 {
				t.Errorf("%+v", e)
			}
		}
		if err := l.Health(t.Context()); err != nil {
			t.Error(err)
		}
	}
	check(l)
	all := replayed(t, l, 0)
	for range all {
		select {
		case <-more:
		case err := <-done:
			t.Fatal(err)
		}
	}
	cancel()
	<-done
	if !slices.Equal(followed, all) {
		t.Errorf("followed %q\nwant %q", followed, all)
	}
	id := l.ID()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	l = openTest(t, embedded.Options{Dir: dir})
	if l.ID() != id {
		t.Errorf("the ID was %s and is %s", id, l.ID())
	}
	check(l)
	mustAppend(t, l, commit(moveOf("old"), "2", 1, 1))
	if records, err := l.Read(t.Context(), moveOf("old"), 0); err != nil || len(records) != 2 {
		t.Errorf("%v, %v", records, err)
	}
}

// TestEpochClosedByAnother: a process that does not know that the epoch was closed stores nothing in the next one that does not
// belong there, reads what others appended there, and follows.
func TestEpochClosedByAnother(t *testing.T) {
	srv := logtest.Serve(t, &server.Options{})
	o := eventlog.ExternalOptions{URL: srv.ClientURL(), Create: true}
	closer, stale := connectTest(t, o), connectTest(t, o)
	o.Create = false
	reader := connectTest(t, o)
	mustAppend(t, closer, commit(moveOf("a"), "1", 0, 1))
	closeEpoch(t, closer)
	mustAppend(t, closer, commit(moveOf("a"), "2", 1, 1))

	_, err := stale.Append(t.Context(), commit(moveOf("a"), "another", 0, 1))
	wantErr(t, err, eventlog.ErrConflict)
	closeEpoch(t, closer)
	if records, err := reader.Read(t.Context(), moveOf("a"), 0); err != nil || len(records) != 2 {
		t.Errorf("%v, %v", records, err)
	}
	if got := mustAppend(t, stale, commit(moveOf("b"), "1", 0, 1)); got != 7 {
		t.Errorf("stored at %d", got)
	}
	if r, err := reader.At(t.Context(), 7); err != nil || r.Aggregate != moveOf("b") {
		t.Errorf("%+v, %v", r, err)
	}
	if n := len(replayed(t, reader, 0)); n != 7 {
		t.Errorf("%d commits", n)
	}
}

// TestClosingHoldsUpNobody: who appends while epochs are closed, again and again, from several processes, makes one history.
func TestClosingHoldsUpNobody(t *testing.T) {
	_, three := logtest.Cluster(t)
	for name, o := range map[string]eventlog.ExternalOptions{
		"one server":    {URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true},
		"three servers": {URL: three, Create: true, Replicas: 3},
	} {
		t.Run(name, func(t *testing.T) {
			logs := []*eventlog.Log{connectEventually(t, o), connectTest(t, o), connectTest(t, o)}
			ctx := within(t, 5*time.Minute)
			const writers, each, closings = 6, 30, 5
			if err := persist(ctx, func() error { _, err := logs[0].Append(ctx, commit(moveOf("first"), "1", 0, 1)); return err }); err != nil {
				t.Fatal(err) // an epoch without a commit is not closed
			}
			errs := make(chan error, writers+1)
			for w := range writers {
				go func() {
					l, last := logs[w%len(logs)], uint64(0)
					for n := range each {
						var r eventlog.Receipt
						if err := persist(ctx, func() (err error) {
							r, err = l.Append(ctx, commit(moveOf(fmt.Sprint(w)), fmt.Sprint(n), last, 1))
							return err
						}); err != nil {
							errs <- fmt.Errorf("writer %d, commit %d: %w", w, n, err)
							return
						}
						last = r.Seq
					}
					errs <- nil
				}()
			}
			go func() {
				for n := range closings {
					if err := persist(ctx, func() error { return logs[n%2].CloseEpoch(ctx, eventlog.Closing{Actor: "user/test", Time: decided}) }); err != nil {
						errs <- fmt.Errorf("closing %d: %w", n, err)
						return
					}
				}
				errs <- nil
			}()
			for range writers + 1 {
				if err := <-errs; err != nil {
					t.Fatal(err)
				}
			}
			listed, err := logs[2].Epochs(ctx)
			if err != nil || len(listed) < 2 {
				t.Fatalf("%+v, %v", listed, err)
			}
			for w := range writers {
				records, err := logs[2].Read(ctx, moveOf(fmt.Sprint(w)), 0)
				if err != nil || len(records) != each {
					t.Errorf("writer %d: %d commits, %v", w, len(records), err)
				}
				for n, r := range records {
					if r.CommitID != fmt.Sprint(n) {
						t.Errorf("writer %d: commit %d is %s", w, n, r.CommitID)
					}
				}
			}
			boundaries(t, logs[2], listed)
		})
	}
}

// boundaries checks that each epoch ends and begins with the commit that says so.
func boundaries(t *testing.T, l *eventlog.Log, listed []eventlog.Epoch) {
	t.Helper()
	catalog := eventlog.NewEpochCatalog()
	for i, e := range listed[:len(listed)-1] {
		last, err := l.At(t.Context(), e.Last)
		if err != nil {
			t.Fatal(err)
		}
		next, err := l.At(t.Context(), e.Last+1)
		if err != nil {
			t.Fatal(err)
		}
		var facts []eventlog.EpochEvent
		for _, r := range []eventlog.Record{last, next} {
			if err := catalog.Fold(r, func(e eventlog.EpochEvent, _ time.Time) { facts = append(facts, e) }); err != nil {
				t.Fatalf("epoch %d, commit %d on %s: %v", e.Number, r.Seq, r.Aggregate, err)
			}
		}
		opened := eventlog.EpochOpened{Epoch: e.Number + 1, Stream: listed[i+1].Stream, Previous: e.Stream, Last: e.Last, Commit: last.Fingerprint()}
		if len(facts) != 2 || facts[1] != opened {
			t.Errorf("after epoch %d: %+v, want %+v", e.Number, facts, opened)
		}
	}
}

// TestSealOverEpochs: the seals of a log continue over its epochs.
func TestSealOverEpochs(t *testing.T) {
	l := openTest(t, embedded.Options{})
	key, err := seal.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	s, err := seal.OpenSealer(t.TempDir(), l, key)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var sealed []seal.Checkpoint
	for n := range 10 {
		mustAppend(t, l, commit(moveOf(fmt.Sprint(n)), "1", 0, 1))
		c, _, err := s.Seal(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		sealed = append(sealed, c)
		closeEpoch(t, l)
	}
	v := seal.NewVerifier(sealed[9], sealed[:9], s.Tree())
	if _, err := l.Replay(t.Context(), 0, func(r eventlog.Record) error { return v.Add(seal.MessageOf(r)) }); err != nil {
		t.Fatal(err)
	}
	report, err := v.Report()
	if err != nil || len(report.Findings) > 0 || report.Size != 28 {
		t.Errorf("%+v, %v", report, err)
	}
}
