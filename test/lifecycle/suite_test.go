package lifecycle

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"sync"
	"testing"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// bed is set once by TestMain, because starting two management clusters is expensive.
var bed *testbed.Bed //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "lifecycle", testbed.Options{}, func(_ context.Context, b *testbed.Bed) error {
		bed = b
		return nil
	}))
}

func blue() *testbed.Side { return bed.Side("blue") }

// clusters makes the blue side the run's own cluster.
func clusters() *access.Clusters {
	return &access.Clusters{Own: ownConfig(blue()), Local: true}
}

// step is one step of a run as the engine stores it. Its record outlives an attempt.
type step struct {
	t         *testing.T
	kind      task.Kind
	namespace string
	name      string
	with      any
	inputs    map[string]json.RawMessage
	dir       string
	failure   *task.Failure
	account   string // the ServiceAccount of a run in the daemon

	mu       sync.Mutex
	attempt  int
	undo     json.RawMessage
	adopted  bool
	output   json.RawMessage
	waits    bool                 // the attempt only waits
	recorded func() error         // called after a record has been stored
	progress func(message string) // called with every progress message
}

func (s *step) call() *task.Call {
	s.t.Helper()
	with, err := json.Marshal(s.with)
	harness.Must(s.t, err)
	return &task.Call{
		Run: s.namespace + "/run/1", Task: s.name, Attempt: s.attempt, Namespace: s.namespace, Name: "run",
		With: with, Inputs: s.inputs, Undo: s.undo, Output: s.output, Dir: s.dir, Failure: s.failure, ServiceAccount: s.account,
		Record: func(_ context.Context, undo json.RawMessage, adopted bool) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.undo, s.adopted = undo, adopted
			if s.recorded != nil {
				return s.recorded()
			}
			return nil
		},
		Progress: func(message string) {
			s.t.Logf("%s: %s", s.name, message)
			if s.progress != nil {
				s.progress(message)
			}
		},
		Yield: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.waits = true
		},
		Logger: slog.New(slog.DiscardHandler),
	}
}

// run makes one attempt.
func (s *step) run(ctx context.Context) error {
	s.t.Helper()
	s.attempt++
	output, err := s.kind.Run(ctx, s.call())
	if err == nil {
		s.output = output
	}
	return err
}

func (s *step) undoes(ctx context.Context) error {
	s.t.Helper()
	return s.kind.Undo(ctx, s.call())
}

var errDeath = errors.New("the process died here")
