package app

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes/fake"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/trust"
)

type sent int

func (s *sent) RoundTrip(*http.Request) (*http.Response, error) {
	*s++
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// TestTenure: a process that did not renew the Lease, because it was stopped for one, appends nothing and changes no cluster from the
// moment on at which another one may hold the Lease. It may read. When it has renewed the Lease it acts again.
func TestTenure(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	held := &tenure{now: func() time.Time { return now }}
	l := &lease{
		client: fake.NewClientset().CoordinationV1().Leases(trust.LeaseNamespace), holder: "one", logID: "aaaa", installation: "a",
		head: func() uint64 { return 0 }, tenure: held,
	}
	log := &marked{Log: logtest.Open(t), tenure: held}
	var requests sent
	client := &http.Client{Transport: held.fence(&requests)}
	last := uint64(0)
	acts := func(want bool) {
		t.Helper()
		receipt, err := log.Append(t.Context(), eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "fleet/a"}, ID: now.String(), Expected: last,
			Events: []eventlog.Event{{Type: "dev.scute.move.paused.v1", Time: now, Data: []byte("{}")}},
		})
		switch {
		case want && err != nil, !want && !errors.Is(err, eventlog.ErrUnavailable):
			t.Errorf("appending: %v", err)
		case want:
			last = receipt.Seq
		}
		for method, want := range map[string]bool{
			http.MethodGet: true, http.MethodPost: want, http.MethodPut: want, http.MethodPatch: want, http.MethodDelete: want,
		} {
			r, err := http.NewRequestWithContext(t.Context(), method, "http://example.com", nil)
			if err != nil {
				t.Fatal(err)
			}
			before := requests
			answer, err := client.Do(r)
			if err == nil {
				_ = answer.Body.Close()
			}
			if got := requests > before; got != want || got != (err == nil) {
				t.Errorf("%s is sent: %t, want %t; %v", method, got, want, err)
			}
		}
	}
	acts(false) // before it leads
	if err := l.Create(t.Context(), record("one")); err != nil {
		t.Fatal(err)
	}
	acts(true)
	now = now.Add(11 * time.Second)
	acts(true)
	now = now.Add(2 * time.Second) // of 15 seconds that the Lease lasts
	acts(false)
	if err := l.Update(t.Context(), record("one")); err != nil {
		t.Fatal(err)
	}
	acts(true)
	if err := l.Update(t.Context(), record("")); err != nil { // given up
		t.Fatal(err)
	}
	acts(false)
}

// TestTenureWithoutLeaderElection: such a process always acts.
func TestTenureWithoutLeaderElection(t *testing.T) {
	var held *tenure
	if err := held.held(); err != nil {
		t.Error(err)
	}
	var requests sent
	if held.fence(&requests) != http.RoundTripper(&requests) {
		t.Error("it is fenced")
	}
}
