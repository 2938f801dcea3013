package app

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

func TestEpochDue(t *testing.T) {
	began := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	both := EpochOptions{MaxAge: 30 * 24 * time.Hour, MaxBytes: 500}
	for name, c := range map[string]struct {
		policy EpochOptions
		epoch  eventlog.Epoch
		after  time.Duration
		want   string // "" is not
	}{
		"young and small":   {both, eventlog.Epoch{Number: 1, First: 1, Last: 9, Bytes: 499}, 719 * time.Hour, ""},
		"old":               {both, eventlog.Epoch{Number: 1, First: 1, Last: 9, Bytes: 1}, 720 * time.Hour, "log-epoch-max-age is 720h"},
		"large":             {both, eventlog.Epoch{Number: 2, First: 10, Last: 19, Bytes: 500}, 0, "500 bytes, log-epoch-max-bytes is 500"},
		"near the limit":    {EpochOptions{MaxBytes: 1 << 40}, eventlog.Epoch{Number: 1, First: 1, Last: 9, Bytes: 900}, 0, "90 % of the log's limit of 1000"},
		"below the limit":   {EpochOptions{MaxBytes: 1 << 40}, eventlog.Epoch{Number: 1, First: 1, Last: 9, Bytes: 899}, 0, ""},
		"size without age":  {EpochOptions{MaxBytes: 500}, eventlog.Epoch{Number: 1, First: 1, Last: 9, Bytes: 1}, 1e6 * time.Hour, ""},
		"age without size":  {EpochOptions{MaxAge: 24 * time.Hour}, eventlog.Epoch{Number: 1, First: 1, Last: 9, Bytes: 999}, 0, ""},
		"no policy":         {EpochOptions{}, eventlog.Epoch{Number: 1, First: 1, Last: 9, Bytes: 999}, 1e6 * time.Hour, ""},
		"a log of nothing":  {both, eventlog.Epoch{Number: 1, First: 1}, 1e6 * time.Hour, ""},
		"one of nothing":    {both, eventlog.Epoch{Number: 2, First: 10, Last: 10, Bytes: 999}, 1e6 * time.Hour, ""},
		"one commit":        {both, eventlog.Epoch{Number: 1, First: 1, Last: 1, Bytes: 1}, 1e6 * time.Hour, "policy"},
		"one of one commit": {both, eventlog.Epoch{Number: 2, First: 10, Last: 11, Bytes: 1}, 1e6 * time.Hour, "it began at 2026-01-01T00:00:00Z"},
	} {
		t.Run(name, func(t *testing.T) {
			c.epoch.Since = began
			got := c.policy.due(c.epoch, 1000, began.Add(c.after))
			if (got == "") != (c.want == "") || !strings.Contains(got, c.want) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// told is what a daemon tells the users of the cluster.
type told struct {
	mu     sync.Mutex
	closed int
	notes  []string
}

func (s *told) tell(closed bool, note string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if closed {
		s.closed++
	}
	s.notes = append(s.notes, note)
}

func closer(log *eventlog.Log, policy EpochOptions, to *told) *epochs {
	return &epochs{
		log: log, policy: policy, held: func() error { return nil }, actor: "daemon/test", asked: make(chan struct{}, 1),
		told: to.tell, logger: slog.New(slog.DiscardHandler),
	}
}

func started(t *testing.T, log *eventlog.Log) {
	t.Helper()
	c := eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a/b"}, ID: "1",
		Events: []eventlog.Event{{Type: "dev.scute.move.started.v1", Time: time.Now(), Actor: "test", Data: []byte(`{}`)}},
	}
	if _, err := log.Append(t.Context(), c); err != nil {
		t.Fatal(err)
	}
}

// TestEpochsOfTwoDaemons: two daemons that find at once that an epoch is due close it once, and say why in the log.
func TestEpochsOfTwoDaemons(t *testing.T) {
	url := logtest.Serve(t, &server.Options{}).ClientURL()
	first, second := connected(t, url), connected(t, url)
	started(t, first)
	old, err := first.Epochs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	policy, said := EpochOptions{MaxBytes: 1}, &told{}
	ended := make(chan error)
	for _, l := range []*eventlog.Log{first, second} {
		e := closer(l, policy, said)
		e.log = late{l, old}
		go func() { ended <- e.look(t.Context()) }()
	}
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
	list, err := first.Epochs(t.Context())
	if err != nil || len(list) != 2 || said.closed == 0 {
		t.Errorf("%+v, %v, %q", list, err, said.notes)
	}
	r, err := first.At(t.Context(), 2)
	if err != nil {
		t.Fatal(err)
	}
	if events, err := r.Events(); err != nil || events[0].Actor != "daemon/test" || !strings.Contains(string(events[0].Data), "log-epoch-max-bytes is 1") {
		t.Errorf("%+v, %v", events, err)
	}
}

// late is a log of which a daemon saw the epochs some time ago.
type late struct {
	*eventlog.Log
	saw []eventlog.Epoch
}

func (l late) Epochs(context.Context) ([]eventlog.Epoch, error) { return l.saw, nil }

func connected(t *testing.T, url string) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Connect(t.Context(), eventlog.ExternalOptions{URL: url, Create: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// TestEpochsAnswer: a daemon closes the epoch that it is asked to close, at once, and refuses with the reason what cannot succeed.
func TestEpochsAnswer(t *testing.T) {
	url := logtest.Serve(t, &server.Options{}).ClientURL()
	log := connected(t, url)
	started(t, log)
	said := &told{}
	e := closer(log, EpochOptions{}, said)
	ctx, stop := context.WithCancel(t.Context())
	running := make(chan struct{})
	go func() { e.run(ctx); close(running) }()
	following := make(chan struct{})
	go func() {
		_ = log.Follow(ctx, 0, func(r eventlog.Record) error {
			if r.Aggregate.Kind == eventlog.KindDaemon {
				e.news(r.Aggregate.ID, r.Seq)
			}
			return nil
		})
		close(following)
	}()
	defer func() { stop(); <-running; <-following }()
	ask := func() eventlog.CloseRequest {
		t.Helper()
		r, err := log.RequestClose(ctx, eventlog.Closing{Actor: "user/jane", Reason: "end of 2026", Time: time.Now()})
		if err == nil {
			r, err = log.AwaitClose(ctx, r)
		}
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := ask(); r.Refused != "" || r.Epoch != 1 {
		t.Errorf("%+v", r)
	}
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err == nil {
		_, err = js.CreateStream(ctx, jetstream.StreamConfig{Name: "SCUTE_3", Subjects: []string{"other"}})
	}
	if err != nil {
		t.Fatal(err)
	}
	again := eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "c/d"}, ID: "1",
		Events: []eventlog.Event{{Type: "dev.scute.move.started.v1", Time: time.Now(), Actor: "test", Data: []byte(`{}`)}},
	}
	if _, err := log.Append(ctx, again); err != nil {
		t.Fatal(err)
	}
	if r := ask(); r.Epoch != 2 || !strings.Contains(r.Refused, "stream SCUTE_3 exists") {
		t.Errorf("%+v", r)
	}
	said.mu.Lock()
	defer said.mu.Unlock()
	if said.closed != 1 || len(said.notes) != 2 || !strings.Contains(said.notes[0], "Epoch 1 of the event log was closed for user/jane: end of 2026") {
		t.Errorf("%q", said.notes)
	}
}

// TestEpochsWait: a daemon that does not surely hold the Lease closes nothing.
func TestEpochsWait(t *testing.T) {
	log := logtest.Open(t)
	started(t, log)
	e := closer(log, EpochOptions{MaxBytes: 1}, &told{})
	ctx, stop := context.WithCancel(t.Context())
	e.held = func() error { stop(); return errors.New("not held") }
	e.run(ctx)
	if list, err := log.Epochs(t.Context()); err != nil || len(list) != 1 {
		t.Errorf("%+v, %v", list, err)
	}
}
