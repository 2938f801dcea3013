package app

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/healthz"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"scute.dev/eventlog"
)

// fakeLog is a log with configured answers.
type fakeLog struct {
	health, writable error
	head             uint64
}

func (f *fakeLog) Health(context.Context) error         { return f.health }
func (f *fakeLog) Head(context.Context) (uint64, error) { return f.head, nil }
func (f *fakeLog) CheckWritable() error                 { return f.writable }

// TestReadiness checks that readiness fails if the log accepts no commits or the view has stopped before the end of the
// log.
func TestReadiness(t *testing.T) {
	now, position, other := time.Now(), uint64(3), error(nil)
	log, caughtUp := &fakeLog{head: 3}, make(chan struct{})
	r := &readiness{
		log: log, caughtUp: caughtUp, position: func() uint64 { return position },
		checkOther: func() error { return other }, now: func() time.Time { return now },
	}
	is := func(want string) {
		t.Helper()
		err := r.check(httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/readyz", nil))
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	is("still replaying")
	close(caughtUp)
	is("")
	log.head = 9
	is("") // the view has time to catch up
	now = now.Add(stalledAfter + time.Second)
	is("commit 3 of 9")
	position = 5
	is("") // it makes progress
	now = now.Add(time.Hour)
	position = 9
	is("") // it has caught up
	other = errors.New("another installation acts")
	is("another installation")
	other, log.health = nil, eventlog.ErrFrozen
	is("frozen")
}

// registered records what is registered with a manager.
type registered struct {
	run    manager.Runnable
	checks []string
}

func (r *registered) Add(run manager.Runnable) error { r.run = run; return nil }

func (r *registered) AddReadyzCheck(name string, _ healthz.Checker) error {
	r.checks = append(r.checks, name)
	return nil
}

// TestFrozenLogEndsTheProcess checks that the process ends when its log is frozen and the disk accepts writes again.
func TestFrozenLogEndsTheProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		log, m := &fakeLog{}, &registered{}
		if err := (&readiness{log: log}).register(m, slog.New(slog.DiscardHandler)); err != nil || m.run == nil || len(m.checks) != 1 {
			t.Fatalf("registered = %+v, error %v", m, err)
		}
		ended := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { ended <- m.run.Start(ctx) }()
		goesOn := func() {
			t.Helper()
			time.Sleep(10 * storeCheckInterval)
			synctest.Wait()
			select {
			case err := <-ended:
				t.Fatalf("ended with %v, want it to run", err)
			default:
			}
		}
		goesOn()
		log.health, log.writable = eventlog.ErrFrozen, errors.New("no space left on device")
		goesOn()
		log.writable = nil
		if err := <-ended; !errors.Is(err, eventlog.ErrFrozen) {
			t.Errorf("ended with %v, want ErrFrozen", err)
		}
	})
}
