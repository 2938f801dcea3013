package eventlog_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// asking is what somebody says who wants an epoch to be closed.
var asking = eventlog.Closing{Actor: "user/jane", Reason: "end of 2026", Time: decided}

// answer is what a daemon does about requests.
func answer(ctx context.Context, l *eventlog.Log) error {
	r, ok, err := l.OpenCloseRequest(ctx)
	if err != nil || !ok {
		return err
	}
	c := r.Closing
	c.Epoch = r.Epoch
	return l.CloseEpoch(ctx, c)
}

// TestRequestClose: who may append to a log has its daemon close an epoch, once, and is named in the log. Who may only read
// cannot ask.
func TestRequestClose(t *testing.T) {
	log, _ := guarded(t)
	operator := connectTest(t, eventlog.ExternalOptions{URL: log.URL(), Token: operatorToken})
	reader := connectTest(t, eventlog.ExternalOptions{URL: log.URL(), Token: readerToken})
	_, err := operator.RequestClose(t.Context(), asking)
	wantErr(t, err, eventlog.ErrEmptyEpoch)
	mustAppend(t, log, commit(moveOf("a"), "1", 0, 1))
	soon, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	_, err = reader.RequestClose(soon, asking)
	wantErr(t, err, eventlog.ErrUnavailable)
	if _, ok, err := log.OpenCloseRequest(t.Context()); ok || err != nil {
		t.Errorf("there is a request: %v", err)
	}

	asked, err := operator.RequestClose(t.Context(), asking)
	if err != nil || asked.Epoch != 1 {
		t.Fatalf("%+v, %v", asked, err)
	}
	again, err := operator.RequestClose(t.Context(), eventlog.Closing{Actor: "user/joe", Reason: "full", Time: decided})
	if err != nil || again.Actor != "user/jane" || again.Reason != "end of 2026" || again.Epoch != 1 {
		t.Errorf("asked again: %+v, %v", again, err)
	}
	if err := answer(t.Context(), log); err != nil {
		t.Fatal(err)
	}
	for _, r := range []eventlog.CloseRequest{asked, again} {
		if r, err := operator.AwaitClose(t.Context(), r); err != nil || r.Refused != "" {
			t.Errorf("%+v, %v", r, err)
		}
	}
	if _, ok, err := log.OpenCloseRequest(t.Context()); ok || err != nil {
		t.Errorf("there is a request: %v", err)
	}
	// A daemon that learns late of the request closes nothing.
	if err := log.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/jane", Epoch: 1}); err != nil {
		t.Error(err)
	}
	_, err = operator.RequestClose(t.Context(), asking)
	wantErr(t, err, eventlog.ErrEmptyEpoch)
	want := []string{"1 move/a 1", "2 daemon/closings ", "3 daemon/epochs close/", "4 daemon/epochs open/"}
	got := replayed(t, reader, 0)
	if !slices.EqualFunc(got, want, strings.HasPrefix) {
		t.Errorf("%q", got)
	}
	if r, err := log.At(t.Context(), 3); err != nil {
		t.Error(err)
	} else if events, err := r.Events(); err != nil || events[0].Actor != "user/jane" || !strings.Contains(string(events[0].Data), "end of 2026") {
		t.Errorf("%+v, %v", events, err)
	}
	wantErr(t, log.CloseEpoch(t.Context(), eventlog.Closing{Actor: "user/jane", Epoch: 3}), eventlog.ErrConfig, "epoch 3")
}

// TestRefuseClose: a daemon that cannot close an epoch says why to who waits. A refusal that comes too late says nothing.
func TestRefuseClose(t *testing.T) {
	l := openTest(t, embedded.Options{})
	mustAppend(t, l, commit(moveOf("a"), "1", 0, 1))
	asked, err := l.RequestClose(t.Context(), asking)
	if err != nil {
		t.Fatal(err)
	}
	late, _, err := l.OpenCloseRequest(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // it is tried again after an unclear answer
		if err := l.RefuseClose(t.Context(), late, "daemon/one", "no room", decided); err != nil {
			t.Fatal(err)
		}
	}
	if r, err := l.AwaitClose(t.Context(), asked); err != nil || r.Refused != "no room" {
		t.Errorf("%+v, %v", r, err)
	}
	if _, ok, err := l.OpenCloseRequest(t.Context()); ok || err != nil {
		t.Errorf("there is a request: %v", err)
	}
	if asked, err = l.RequestClose(t.Context(), asking); err != nil {
		t.Fatal(err)
	}
	late, ok, err := l.OpenCloseRequest(t.Context())
	if !ok || err != nil {
		t.Fatalf("there is no request: %v", err)
	}
	if err := answer(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	if err := l.RefuseClose(t.Context(), late, "daemon/one", "no room", decided); err != nil {
		t.Fatal(err)
	}
	if r, err := l.AwaitClose(t.Context(), asked); err != nil || r.Refused != "" {
		t.Errorf("%+v, %v", r, err)
	}
	if got := replayed(t, l, 0); len(got) != 6 {
		t.Errorf("%q", got)
	}
}

// TestRequestsAtOnce: many ask at once, of one server and of three, and several daemons answer. The epoch is closed once.
func TestRequestsAtOnce(t *testing.T) {
	_, three := logtest.Cluster(t)
	for name, o := range map[string]eventlog.ExternalOptions{
		"one server":    {URL: logtest.Serve(t, &server.Options{}).ClientURL(), Create: true},
		"three servers": {URL: three, Create: true, Replicas: 3},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := within(t, 5*time.Minute)
			logs := []*eventlog.Log{connectEventually(t, o), connectTest(t, o), connectTest(t, o)}
			if err := persist(ctx, func() error { _, err := logs[0].Append(ctx, commit(moveOf("a"), "1", 0, 1)); return err }); err != nil {
				t.Fatal(err)
			}
			ended := make(chan error)
			const each = 3
			for i, l := range logs {
				go func() {
					err := l.Follow(ctx, 0, func(r eventlog.Record) error {
						if r.Aggregate == eventlog.Closings() {
							if err := persist(ctx, func() error { return answer(ctx, l) }); err != nil {
								return err
							}
						}
						if r.Seq >= 4 {
							return errEnough
						}
						return nil
					})
					if errors.Is(err, errEnough) {
						err = nil
					}
					ended <- err
				}()
				for n := range each {
					go func() {
						c := eventlog.Closing{Actor: fmt.Sprint("user/", i, n), Reason: "a test", Time: decided}
						var r eventlog.CloseRequest
						err := persist(ctx, func() (err error) { r, err = l.RequestClose(ctx, c); return err })
						if err == nil && r.Epoch == 1 {
							r, err = l.AwaitClose(ctx, r)
						}
						if r.Refused != "" {
							err = errors.New(r.Refused)
						}
						ended <- err
					}()
				}
			}
			for range len(logs) * (each + 1) {
				if err := <-ended; err != nil {
					t.Fatal(err)
				}
			}
			listed, err := logs[0].Epochs(ctx)
			if err != nil || len(listed) != 2 {
				t.Fatalf("%+v, %v", listed, err)
			}
			boundaries(t, logs[0], listed)
			if got := replayed(t, logs[0], 0); len(got) != 4 {
				t.Errorf("%q", got)
			}
		})
	}
}

var errEnough = errors.New("enough")

// TestRequestWhileClosing: a request that comes while an epoch is being closed is for that one. It is not stored in the next one, and
// not after the commit that ends the epoch.
func TestRequestWhileClosing(t *testing.T) {
	for _, step := range closingSteps {
		t.Run(step, func(t *testing.T) {
			log, _ := guarded(t)
			operator := connectTest(t, eventlog.ExternalOptions{URL: log.URL(), Token: operatorToken})
			mustAppend(t, log, commit(moveOf("a"), "1", 0, 1))
			asked := make(chan error, 1)
			log.OnClosing(func(at string) {
				if at != step {
					return
				}
				// The operator learns of the closing by its own request, as far as it is.
				go func() {
					r, err := operator.RequestClose(t.Context(), asking)
					if err == nil {
						r, err = operator.AwaitClose(t.Context(), r)
					}
					if err == nil && r.Epoch != 1 {
						err = fmt.Errorf("it is about epoch %d", r.Epoch)
					}
					if errors.Is(err, eventlog.ErrEmptyEpoch) {
						err = nil
					}
					asked <- err
				}()
			})
			closeEpoch(t, log)
			if err := <-asked; err != nil {
				t.Error(err)
			}
			if err := answer(t.Context(), log); err != nil {
				t.Error(err)
			}
			listed, err := log.Epochs(t.Context())
			if err != nil || len(listed) != 2 {
				t.Fatalf("%+v, %v", listed, err)
			}
			boundaries(t, log, listed)
			if got := replayed(t, log, 0); len(got) != 3 {
				t.Errorf("%q", got)
			}
		})
	}
}

// playAnswerer asks on the log in os.Args[1] for its epoch to be closed, closes it, and kills itself at the step os.Args[2].
func playAnswerer() {
	ctx := context.Background()
	die := func(step string) {
		if step == os.Args[2] {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
	}
	l, err := embedded.Open(ctx, embedded.Options{Dir: os.Args[1]})
	if err == nil {
		l.OnClosing(die)
		_, err = l.Append(ctx, commit(moveOf("a"), "1", 0, 1))
	}
	if err == nil {
		_, err = l.RequestClose(ctx, asking)
	}
	if err == nil {
		die("asked")
		err = answer(ctx, l)
	}
	die("closed")
	fmt.Println("fail", err)
	os.Exit(1)
}

// TestKilledWhileAnswering: wherever the process dies that was asked to close an epoch, the next one closes that epoch and no other.
func TestKilledWhileAnswering(t *testing.T) {
	for _, step := range append([]string{"asked", "closed"}, closingSteps...) {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			c := startChild(t, "answer", dir, step)
			if c.lines.Scan() {
				t.Fatal(c.lines.Text())
			}
			c.kill()
			l := openTest(t, embedded.Options{Dir: dir})
			for range 2 {
				if err := answer(t.Context(), l); err != nil {
					t.Fatal(err)
				}
			}
			listed, err := l.Epochs(t.Context())
			if err != nil || len(listed) != 2 {
				t.Fatalf("%+v, %v", listed, err)
			}
			boundaries(t, l, listed)
			if _, ok, err := l.OpenCloseRequest(t.Context()); ok || err != nil {
				t.Errorf("there is a request: %v", err)
			}
			if got := replayed(t, l, 0); len(got) != 4 {
				t.Errorf("%q", got)
			}
		})
	}
}
