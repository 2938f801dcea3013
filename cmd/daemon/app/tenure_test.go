package app

import (
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/trust"
)

type requestCounter int

func (s *requestCounter) RoundTrip(*http.Request) (*http.Response, error) {
	*s++
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(""))}, nil
}

// TestTenure checks that a process that has not renewed the Lease, because it was suspended for example, neither
// appends nor changes a cluster once another process may hold the Lease. It may still read, and acts again after a
// renewal.
func TestTenure(t *testing.T) {
	now := time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)
	held := &tenure{now: func() time.Time { return now }}
	l := &lease{
		client: fake.NewClientset().CoordinationV1().Leases(trust.LeaseNamespace), holder: "one", logID: "aaaa", installation: "a",
		head: func() uint64 { return 0 }, tenure: held,
	}
	log := &watermarkLog{Log: logtest.Open(t), tenure: held}
	var requests requestCounter
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
			t.Errorf("Append = %v", err)
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
				t.Errorf("%s was sent: %t, want %t; error %v", method, got, want, err)
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
	now = now.Add(2 * time.Second) // the Lease lasts 15 seconds
	acts(false)
	if err := l.Update(t.Context(), record("one")); err != nil {
		t.Fatal(err)
	}
	acts(true)
	if err := l.Update(t.Context(), record("")); err != nil { // it releases the Lease
		t.Fatal(err)
	}
	acts(false)
}

// TestTenureWithoutLeaderElection checks that a process without leader election always acts.
func TestTenureWithoutLeaderElection(t *testing.T) {
	var held *tenure
	if err := held.check(); err != nil {
		t.Error(err)
	}
	var requests requestCounter
	if held.fence(&requests) != http.RoundTripper(&requests) {
		t.Error("requests are fenced")
	}
}

// TestControllersHoldTheLease checks that controllers write nothing once the Lease may have another holder, but can
// still read.
func TestControllersHoldTheLease(t *testing.T) {
	var writes atomic.Int64
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method != http.MethodGet {
			writes.Add(1)
		}
		answer := any(corev1.ConfigMap{TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}})
		if r.URL.Path == "/api/v1" {
			answer = metav1.APIResourceList{GroupVersion: "v1", APIResources: []metav1.APIResource{{Name: "configmaps", Namespaced: true, Kind: "ConfigMap"}}}
		}
		_ = json.NewEncoder(w).Encode(answer)
	}))
	defer api.Close()
	held := &tenure{}
	config := &rest.Config{Host: api.URL}
	acting := rest.CopyConfig(config)
	acting.Wrap(held.fence)
	mgr, err := newManager(Options{MetricsAddress: "0", HealthAddress: "0"}, config, acting, nil, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "a"}}
	held.beginRenewal()(time.Hour)
	if err := mgr.GetClient().Create(t.Context(), o.DeepCopy()); err != nil {
		t.Fatal(err)
	}
	held.beginRenewal()(0)
	if err := mgr.GetClient().Create(t.Context(), o.DeepCopy()); err == nil || !strings.Contains(err.Error(), "not sent") {
		t.Errorf("Create = %v, want that it was not sent", err)
	}
	if n := writes.Load(); n != 1 {
		t.Errorf("got %d writes, want 1", n)
	}
	if err := mgr.GetAPIReader().Get(t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		t.Error(err)
	}
}
