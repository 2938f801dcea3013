package kinds

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// bed is set once by TestMain, because starting an API server is expensive.
var bed *testbed.Bed //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "kinds", testbed.Options{Sides: []string{"one", "two"}, Bare: true}, func(_ context.Context, b *testbed.Bed) error {
		bed = b
		return nil
	}))
}

func admin() client.Client { return bed.Side("one").Client() }

func clusters(local bool) *access.Clusters {
	return &access.Clusters{Own: func() (*rest.Config, error) { return bed.Side("one").Config(), nil }, Local: local}
}

// step is one step of a run as the engine stores it. Its record outlives an attempt.
type step struct {
	t               *testing.T
	kind            task.Kind
	namespace, name string
	account         string
	with            string // JSON, as a kind receives it
	dir             string

	mu      sync.Mutex
	attempt int
	since   int // the first attempt of the execution
	undo    json.RawMessage
	adopted bool
	output  json.RawMessage
	says    []string
	// unrecorded means that the process crashes before the log has the outcome.
	unrecorded bool
	die        bool         // the process crashes right after Record
	progress   func(string) // called with every progress message
	recorded   func()       // called after each record
	waits      bool         // the attempt only waits
	// workedAgain means that the attempt requested a worker again after a wait.
	workedAgain bool
}

var errDeath = errors.New("the process died here")

func (s *step) call() *task.Call {
	return &task.Call{
		Run: s.namespace + "/run/1", Task: s.name, Attempt: s.attempt, Execution: s.since, Namespace: s.namespace, Name: "run", ServiceAccount: s.account,
		With: json.RawMessage(s.with), Undo: s.undo, Output: s.output, Dir: s.dir, Logger: slog.New(slog.DiscardHandler),
		Record: func(_ context.Context, undo json.RawMessage, adopted bool) error {
			s.undo, s.adopted = undo, adopted
			if s.die {
				s.die = false
				return errDeath
			}
			if s.recorded != nil {
				s.recorded()
			}
			return nil
		},
		Progress: func(message string) {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.says = append(s.says, message)
			if s.progress != nil {
				s.progress(message)
			}
		},
		Yield: func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.waits = true
		},
		Reacquire: func(context.Context) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.workedAgain, s.waits = s.workedAgain || s.waits, false
			return nil
		},
	}
}

// run makes one attempt.
func (s *step) run(ctx context.Context) error {
	s.t.Helper()
	if problems := s.kind.Validate(json.RawMessage(s.with)); len(problems) > 0 {
		s.t.Fatalf("not valid: %v", problems)
	}
	s.attempt++
	if s.since == 0 {
		s.since = s.attempt
	}
	output, err := s.kind.Run(ctx, s.call())
	if err == nil {
		s.output = output
		if !s.unrecorded {
			s.since = 0
		}
	}
	return err
}

func (s *step) takeBack(ctx context.Context) error { return s.kind.Undo(ctx, s.call()) }

// rests checks that the current attempt only waits and occupies no worker.
func (s *step) rests(what string) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.waits {
		s.t.Errorf("%s holds a place", what)
	}
}

// saw waits until the step has reported a text.
func (s *step) saw(ctx context.Context, text string) {
	s.t.Helper()
	eventually(ctx, s.t, "the step says "+text, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, m := range s.says {
			if strings.Contains(m, text) {
				return true
			}
		}
		return false
	})
}

// expiring is a context that expires when the test says so, and not because the machine is slow.
type expiring struct {
	context.Context //nolint:containedctx // it is one
	over            chan struct{}
}

func expires(ctx context.Context) *expiring { return &expiring{ctx, make(chan struct{})} }

func (e *expiring) Done() <-chan struct{} { return e.over }

func (e *expiring) Err() error {
	select {
	case <-e.over:
		return context.DeadlineExceeded
	default:
		return nil
	}
}

func eventually(ctx context.Context, t *testing.T, what string, is func() bool) {
	t.Helper()
	for !is() {
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s: %v", what, ctx.Err())
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// namespace creates a namespace for one test.
func namespace(ctx context.Context, t *testing.T, name string) string {
	t.Helper()
	harness.Must(t, admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}))
	return name
}

func configMap(namespace, name string, data map[string]string) *corev1.ConfigMap {
	return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}, Data: data}
}

func get(ctx context.Context, t *testing.T, apiVersion, kind, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	err := admin().Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, u)
	if apierrors.IsNotFound(err) {
		return nil
	}
	harness.Must(t, err)
	return u
}

func getMap(ctx context.Context, t *testing.T, namespace, name string) *unstructured.Unstructured {
	t.Helper()
	return get(ctx, t, "v1", "ConfigMap", namespace, name)
}

func data(u *unstructured.Unstructured, key string) string {
	v, _, _ := unstructured.NestedString(u.Object, "data", key)
	return v
}

func isFinal(t *testing.T, err error, says ...string) {
	t.Helper()
	if !task.IsFinal(err) {
		t.Fatalf("%v, want a final error", err)
	}
	mentions(t, err, says...)
}

func mentions(t *testing.T, err error, says ...string) {
	t.Helper()
	for _, text := range says {
		if err == nil || !strings.Contains(err.Error(), text) {
			t.Errorf("%v, want an error with %q", err, text)
		}
	}
}
