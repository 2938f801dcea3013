package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// events has the events that a receiver of the webhook accepted: their subjects, by sequence.
type events struct {
	mu       sync.Mutex
	requests int
	took     map[int]string
	outside  []int // sequences of commits that arrived out of order
}

// ServeHTTP accepts events that have the token, and fails every third request.
func (e *events) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.requests++
	seq, err := strconv.Atoi(r.Header.Get("ce-sequence"))
	switch {
	case r.Header.Get("Authorization") != "Bearer open sesame" || err != nil || r.Header.Get("ce-specversion") != "1.0":
		w.WriteHeader(http.StatusBadRequest)
		return
	case e.requests%3 == 0:
		w.WriteHeader(http.StatusServiceUnavailable)
		return
	}
	if _, ok := e.took[seq-1]; !ok && seq > 1 {
		e.outside = append(e.outside, seq)
	}
	e.took[seq] += r.Header.Get("ce-subject") + " " + r.Header.Get("ce-type") + " "
}

// lacks returns "" if the event of a run's paused task has arrived, and otherwise what has arrived.
func (e *events) lacks(run string) string {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, text := range e.took {
		if strings.Contains(text, run) && strings.Contains(text, "task-paused") {
			return ""
		}
	}
	return fmt.Sprintf("it took %v in %d requests", e.took, e.requests)
}

// TestWebhook checks that a daemon that is killed, with the chart's permissions, posts all events in order to a
// receiver that sometimes fails.
func TestWebhook(t *testing.T) {
	ctx := harness.Deadline(t, 3*time.Minute)
	const ns, install = "webhook", scuted.Namespace
	dir, err := shared.blue.NewLogDir()
	harness.Must(t, err)
	secret := t.TempDir()
	harness.Must(t, os.WriteFile(filepath.Join(secret, "token"), []byte("open sesame"), 0o600))
	receiver := &events{took: map[int]string{}}
	srv := httptest.NewServer(receiver)
	t.Cleanup(srv.Close)
	t.Cleanup(func() {
		_ = shared.blue.Side.Client().Delete(context.WithoutCancel(ctx), position(install))
	})
	life := func() *scuted.Daemon {
		return harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: dir, Args: []string{
			"--webhook-url", srv.URL, "--webhook-secret", secret, "--webhook-position", install + "/scute-webhook",
		}})
	}
	asked := func(run string) {
		t.Helper()
		question(ctx, t, shared.blue, ns, run)
		untilRun(ctx, t, shared.blue, ns, run, asks)
		harness.Await(ctx, t, "the receiver has the question of "+run, func() string { return receiver.lacks(ns + "/" + run) })
	}
	d := life()
	asked("first")
	harness.Must(t, d.Kill(ctx))
	d = life()
	asked("second")
	harness.Must(t, d.Stop(ctx))

	saved := position(install)
	harness.Must(t, shared.blue.Side.Client().Get(ctx, client.ObjectKeyFromObject(saved), saved))
	last, err := strconv.Atoi(saved.Data["sequence"])
	harness.Must(t, err)
	receiver.mu.Lock()
	defer receiver.mu.Unlock()
	for seq := 1; seq <= last; seq++ {
		if receiver.took[seq] == "" {
			t.Errorf("position is %d, but no event of commit %d arrived", last, seq)
		}
	}
	if len(receiver.outside) > 0 || last == 0 || saved.Data["logID"] == "" {
		t.Errorf("position is %v; out of order: %v", saved.Data, receiver.outside)
	}
	t.Logf("%d commits, %d requests", last, receiver.requests)
}

func position(namespace string) *corev1.ConfigMap {
	found := &corev1.ConfigMap{}
	found.Namespace, found.Name = namespace, "scute-webhook"
	return found
}
