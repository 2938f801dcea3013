package webhook

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/export/consume"
)

// childEnv is the variable that makes the test binary run a delivery that can be killed; its value is the URL of the
// log.
const childEnv = "SCUTE_TEST_LOG"

func TestMain(m *testing.M) {
	if url := os.Getenv(childEnv); url != "" {
		runDelivery(url, os.Args[1], os.Args[2])
		return
	}
	goleak.VerifyTestMain(m)
}

// runDelivery delivers to a receiver, with its position in a file.
func runDelivery(logURL, receiver, position string) {
	ctx := context.Background()
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: logURL})
	if err != nil {
		panic(err)
	}
	client, err := Secret("").NewClient()
	if err != nil {
		panic(err)
	}
	fmt.Println("begun")
	d := &Delivery{
		Log: log, Store: consume.File(position), SaveInterval: time.Millisecond, Alarm: func(_ bool, err error) { panic(err) },
		Sink: &Sink{URL: receiver, Client: client, InitialInterval: time.Millisecond, MaxInterval: 10 * time.Millisecond},
	}
	d.Run(ctx)
}

// openLog returns a log that listens, and a function that appends commits of one event to it.
func openLog(t *testing.T) (*eventlog.Log, func(n int)) {
	t.Helper()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	last := uint64(0)
	return l, func(n int) {
		t.Helper()
		for range n {
			r, err := l.Append(t.Context(), eventlog.Commit{
				Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/prod"}, ID: strconv.FormatUint(last, 10), Expected: last,
				Events: []eventlog.Event{{Type: "dev.scute.move.tested.v1", Time: time.Now(), Actor: "user/test", Data: json.RawMessage(`{}`)}},
			})
			if err != nil {
				t.Fatal(err)
			}
			last = r.Seq
		}
	}
}

// startDelivery runs a delivery until stop is called, or until the end of the test.
func startDelivery(t *testing.T, d *Delivery) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); d.Run(ctx) }()
	stop = sync.OnceFunc(func() { cancel(); <-done })
	t.Cleanup(stop)
	return stop
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// waitForState waits for a state.
func (d *Delivery) waitForState(ctx context.Context, t *testing.T, want State) {
	t.Helper()
	for d.State() != want {
		if ctx.Err() != nil {
			t.Fatalf("state = %+v, want %+v", d.State(), want)
		}
		time.Sleep(time.Millisecond)
	}
}

// sequencesUpTo returns the sequences from 1 to n.
func sequencesUpTo(n int) []string {
	var out []string
	for i := range n {
		out = append(out, strconv.Itoa(i+1))
	}
	return out
}

// TestReceiverThatDies checks that a delivery continues after the receiver was down, and that writers of the log are
// not affected.
func TestReceiverThatDies(t *testing.T) {
	ctx := withTimeout(t, time.Minute)
	log, appendN := openLog(t)
	r := newReceiver(t, nil)
	d := &Delivery{Log: log, Store: consume.File(filepath.Join(t.TempDir(), "p")), Sink: newSink(t, r.URL, ""), RetryInterval: time.Millisecond, Alarm: func(bool, error) {}}
	d.Sink.MaxElapsedTime = 50 * time.Millisecond // it stops trying now and then, and continues
	stop := startDelivery(t, d)
	appendN(3)
	r.waitForEvents(ctx, t, 3)
	r.Server.CloseClientConnections()
	r.Server.Close()
	appendN(5) // appends do not wait for the receiver
	serveOn(t, strings.TrimPrefix(r.URL, "http://"), r)
	r.waitForEvent(ctx, t, "8") // the last event before is repeated if it was not acknowledged
	if got := slices.Compact(r.sequences()); !slices.Equal(got, sequencesUpTo(8)) {
		t.Errorf("received %v", got)
	}
	d.waitForState(ctx, t, State{Sequence: 8})
	stop()
	if p, err := d.Store.Load(ctx); err != nil || p.LogID != log.ID() || p.Sequence != 8 {
		t.Errorf("position = %+v, error %v", p, err)
	}
}

// TestKillRepeatsAndLosesNothing repeatedly kills the process of a delivery to a receiver that fails now and then, and
// checks that no event is lost.
func TestKillRepeatsAndLosesNothing(t *testing.T) {
	ctx := withTimeout(t, 2*time.Minute)
	log, appendN := openLog(t)
	r := newReceiver(t, func(n int, w http.ResponseWriter, _ *http.Request) bool {
		if n%7 == 0 {
			w.WriteHeader(http.StatusBadGateway)
		}
		return n%7 != 0
	})
	position := filepath.Join(t.TempDir(), "position")
	const lives, each = 8, 20
	for life := range lives {
		appendN(each)
		want := len(r.sequences()) + 5 + life // at least some more than before
		cmd := exec.CommandContext(ctx, os.Args[0], r.URL, position)
		cmd.Env = append(os.Environ(), childEnv+"="+log.URL())
		cmd.Stderr = os.Stderr
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		bufio.NewScanner(out).Scan()
		if life == lives-1 {
			r.waitForEvent(ctx, t, strconv.Itoa(lives*each))
		} else {
			r.waitForEvents(ctx, t, want)
		}
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	}
	got := r.sequences()
	// Each process resumes at or before the first event that was not acknowledged, and never after it.
	next := 1
	for _, s := range got {
		n, _ := strconv.Atoi(s)
		if n > next {
			t.Fatalf("after event %d came %d: %v", next-1, n, got)
		}
		next = max(next, n+1)
	}
	if next != lives*each+1 {
		t.Errorf("%d of %d events were delivered", next-1, lives*each)
	}
	t.Logf("%d events, %d requests received from %d processes", lives*each, len(got), lives)
}

// TestRefusedEventStops checks that nothing is delivered after a rejected event, that it raises one alarm without
// secrets, and that delivery continues after a new token, or after a user skipped the event.
func TestRefusedEventStops(t *testing.T) {
	for name, decide := range map[string]func(t *testing.T, d *Delivery, r *receiver){
		"another token": func(t *testing.T, d *Delivery, _ *receiver) { write(t, string(d.Sink.Secret), "another") },
		"past the event": func(t *testing.T, d *Delivery, r *receiver) {
			if err := d.Store.Save(t.Context(), consume.Position{LogID: d.Log.ID(), Sequence: 3}); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			ctx := withTimeout(t, time.Minute)
			log, appendN := openLog(t)
			r := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
				bad := r.Header.Get("Ce-Sequence") == "3" && r.Header.Get("Authorization") == "Bearer "+token
				if bad {
					http.Error(w, "bad "+token, http.StatusUnauthorized)
				}
				return !bad
			})
			var said bytes.Buffer
			alarms := make(chan string, 10)
			d := &Delivery{
				Log: log, Store: consume.File(filepath.Join(t.TempDir(), "p")), RetryInterval: time.Millisecond,
				Sink: newSink(t, r.URL+"?code=hidden", secretWith(t, token)), Logger: slog.New(slog.NewTextHandler(&said, nil)),
				Alarm: func(stopped bool, err error) { alarms <- fmt.Sprint(stopped, " ", err) },
			}
			stop := startDelivery(t, d)
			appendN(5)
			alarm := <-alarms
			if !strings.HasPrefix(alarm, "true ") || !strings.Contains(alarm, "commit 3") || !strings.Contains(alarm, "401 Unauthorized") {
				t.Errorf("alarm = %s", alarm)
			}
			d.waitForState(ctx, t, State{Sequence: 2, Stopped: true})
			if got := r.sequences(); !slices.Equal(got, sequencesUpTo(2)) {
				t.Errorf("received before the decision: %v", got)
			}
			decide(t, d, r)
			r.waitForEvent(ctx, t, "5")
			stop()
			if d.State().Stopped || len(alarms) > 0 {
				t.Errorf("state %+v, and %d more alarms", d.State(), len(alarms))
			}
			for _, secret := range []string{token, "hidden", r.URL} {
				if strings.Contains(said.String()+alarm, secret) {
					t.Errorf("%q was reported: %s %s", secret, alarm, &said)
				}
			}
		})
	}
}

// TestDecidedAtOnce checks that a position that is changed by the alarm itself is used.
func TestDecidedAtOnce(t *testing.T) {
	log, appendN := openLog(t)
	r := newReceiver(t, func(_ int, w http.ResponseWriter, r *http.Request) bool {
		bad := r.Header.Get("Ce-Sequence") == "1"
		if bad {
			w.WriteHeader(http.StatusBadRequest)
		}
		return !bad
	})
	d := &Delivery{Log: log, Store: consume.File(filepath.Join(t.TempDir(), "p")), Sink: newSink(t, r.URL, ""), RetryInterval: time.Millisecond}
	d.Alarm = func(bool, error) {
		if err := d.Store.Save(t.Context(), consume.Position{LogID: log.ID(), Sequence: 1}); err != nil {
			t.Error(err)
		}
	}
	startDelivery(t, d)
	appendN(2)
	r.waitForEvent(withTimeout(t, time.Minute), t, "2")
}

// TestCertificateOfTheReceiver checks that the receiver's certificate must be signed by the CA of the secret.
func TestCertificateOfTheReceiver(t *testing.T) {
	srv := httptest.NewTLSServer(&receiver{arrived: make(chan struct{}, 1)})
	defer srv.Close()
	known := Secret(t.TempDir())
	writeFile(t, known, caFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})))
	if err := newSink(t, srv.URL, known).Send(t.Context(), event(1)); err != nil {
		t.Error(err)
	}
	stranger := newSink(t, srv.URL, "")
	stranger.MaxElapsedTime = 10 * time.Millisecond
	if err := stranger.Send(t.Context(), event(1)); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("Send with an unknown certificate = %v, want an error", err)
	}
}
