package app

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	k8stesting "k8s.io/client-go/testing"
	"k8s.io/client-go/tools/leaderelection/resourcelock"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
	"scute.dev/internal/trust"
)

func record(holder string) resourcelock.LeaderElectionRecord {
	now := metav1.Now()
	return resourcelock.LeaderElectionRecord{HolderIdentity: holder, LeaseDurationSeconds: 15, RenewTime: now, AcquireTime: now}
}

// TestMarkInTheLease checks that a process raises the mark only after it has judged its log, then at each renewal and
// when asked to, and not after it has lost the Lease.
func TestMarkInTheLease(t *testing.T) {
	clients := fake.NewClientset().CoordinationV1().Leases(trust.LeaseNamespace)
	head := uint64(5)
	l := &lease{client: clients, holder: "one", logID: "aaaa", installation: "a", head: func() uint64 { return head }}
	ctx := t.Context()
	is := func(want trust.Watermark) {
		t.Helper()
		if got, _, err := l.watermark(ctx); err != nil || got != want {
			t.Errorf("mark = %v, want %v; error %v", got, want, err)
		}
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(l.Create(ctx, record("one")))
	is(trust.Watermark{})
	must(l.setWatermark(ctx, 5, ""))
	is(trust.Watermark{LogID: "aaaa", Sequence: 5})
	head = 7
	must(l.Update(ctx, record("one")))
	is(trust.Watermark{LogID: "aaaa", Sequence: 7})
	must(l.raiseWatermark(ctx, 9))
	is(trust.Watermark{LogID: "aaaa", Sequence: 9})
	must(l.Update(ctx, record("one"))) // head has the earlier value
	is(trust.Watermark{LogID: "aaaa", Sequence: 9})

	other := &lease{client: clients, holder: "two", logID: "bbbb", installation: "b", head: func() uint64 { return 1 }}
	if _, _, err := other.Get(ctx); err != nil {
		t.Fatal(err)
	}
	err := other.checkOther(time.Now())
	if err == nil || !strings.Contains(err.Error(), "namespace a, event log aaaa") {
		t.Errorf("other = %v, want that another installation acts", err)
	}
	if err := other.checkOther(time.Now().Add(time.Minute)); err != nil {
		t.Errorf("other = %v for an expired installation, want nil", err)
	}
	must(other.Update(ctx, record("two"))) // it takes the Lease without having judged its log
	is(trust.Watermark{LogID: "aaaa", Sequence: 9})
	if err := l.raiseWatermark(ctx, 10); err == nil {
		t.Error("a process without the Lease raised the mark")
	}
}

// TestGivingUpTheLease checks that releasing the Lease does not overwrite another holder, also after a failed renewal,
// and that a process stops acting before it releases the Lease.
func TestGivingUpTheLease(t *testing.T) {
	set := fake.NewClientset()
	clients := set.CoordinationV1().Leases(trust.LeaseNamespace)
	none := func() uint64 { return 0 }
	one := &lease{client: clients, holder: "one", logID: "aaaa", head: none, tenure: &tenure{}}
	two := &lease{client: clients, holder: "two", logID: "aaaa", head: none}
	ctx := t.Context()
	if err := one.Create(ctx, record("one")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := two.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if err := two.Update(ctx, record("two")); err != nil {
		t.Fatal(err)
	}
	if _, _, err := one.Get(ctx); err != nil {
		t.Fatal(err)
	}
	if err := one.Update(ctx, record("")); err == nil || !strings.Contains(err.Error(), "another process holds it") {
		t.Errorf("the Lease of another process was released: %v", err)
	}
	if now, _, err := two.Get(ctx); err != nil || now.HolderIdentity != "two" {
		t.Errorf("Lease = %+v, %v", now, err)
	}
	if err := one.Update(ctx, record("one")); err != nil { // the other process no longer holds it
		t.Fatal(err)
	}
	if err := one.tenure.check(); err != nil {
		t.Fatal(err)
	}
	set.PrependReactor("update", "leases", func(k8stesting.Action) (bool, runtime.Object, error) {
		if one.tenure.check() == nil {
			t.Error("the process acts while the Lease may already be released")
		}
		return true, nil, errors.New("no answer")
	})
	if err := one.Update(ctx, record("")); err == nil || one.tenure.check() == nil {
		t.Errorf("the process acts after it may have released the Lease: %v", err)
	}
}

// TestLeaseOfSomebodyElse checks that a process stops acting as soon as it reads that the Lease was deleted or has
// another holder, even if it renewed the Lease just before.
func TestLeaseOfSomebodyElse(t *testing.T) {
	for name, lose := range map[string]func(*testing.T, *lease, *lease){
		"deleted": func(t *testing.T, one, _ *lease) {
			if err := one.client.Delete(t.Context(), trust.LeaseName, metav1.DeleteOptions{}); err != nil {
				t.Fatal(err)
			}
		},
		"deleted, and made by another one": func(t *testing.T, one, two *lease) {
			if err := errors.Join(one.client.Delete(t.Context(), trust.LeaseName, metav1.DeleteOptions{}), two.Create(t.Context(), record("two"))); err != nil {
				t.Fatal(err)
			}
		},
		"edited": func(t *testing.T, _, two *lease) {
			if _, _, err := two.Get(t.Context()); err != nil {
				t.Fatal(err)
			}
			if err := two.Update(t.Context(), record("two")); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			clients := fake.NewClientset().CoordinationV1().Leases(trust.LeaseNamespace)
			none := func() uint64 { return 0 }
			one := &lease{client: clients, holder: "one", logID: "aaaa", head: none, tenure: &tenure{}}
			if err := errors.Join(one.Create(t.Context(), record("one")), one.tenure.check()); err != nil {
				t.Fatal(err)
			}
			lose(t, one, &lease{client: clients, holder: "two", logID: "aaaa", head: none})
			_, _, _ = one.Get(t.Context()) // as leader election does after a failed update
			if one.tenure.check() == nil {
				t.Error("the process acts although another one can hold the Lease")
			}
		})
	}
}

// TestManyClaimsAtOnce checks that the Lease is not written for each claim of a starting process, because these writes
// delay its renewal.
func TestManyClaimsAtOnce(t *testing.T) {
	clients := fake.NewClientset()
	const claims = 100
	l := &lease{
		client: clients.CoordinationV1().Leases(trust.LeaseNamespace), holder: "one", logID: "aaaa", installation: "a", head: func() uint64 { return claims },
	}
	if err := errors.Join(l.Create(t.Context(), record("one")), l.setWatermark(t.Context(), 0, "")); err != nil {
		t.Fatal(err)
	}
	before := len(clients.Actions())
	for seq := range uint64(claims) {
		if err := l.raiseWatermark(t.Context(), seq+1); err != nil {
			t.Fatal(err)
		}
	}
	if n := len(clients.Actions()) - before; n != 1 {
		t.Errorf("got %d requests for %d claims, want 1", n, claims)
	}
	if mark, _, err := l.watermark(t.Context()); err != nil || mark.Sequence != claims {
		t.Errorf("mark = %v, %v", mark, err)
	}
}

// TestMarkBeforeTheEffect checks that an append of a claim or a point of no return succeeds only after the mark in the
// Lease was raised.
func TestMarkBeforeTheEffect(t *testing.T) {
	log := logtest.Open(t)
	var raised []uint64
	var fails error
	m := &watermarkLog{Log: log, raiseWatermark: func(_ context.Context, seq uint64) error { raised = append(raised, seq); return fails }}
	last := uint64(0)
	add := func(fact string) error {
		c := eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, ID: fact, Expected: last,
			Events: []eventlog.Event{{Type: "dev.scute.move." + fact + ".v1", Time: time.Now(), Data: []byte("{}")}},
		}
		r, err := m.Append(t.Context(), c)
		last = max(last, r.Seq)
		return err
	}
	for _, fact := range []string{"requested", "claimed", "created", "verified"} {
		if err := add(fact); err != nil {
			t.Fatal(err)
		}
	}
	if len(raised) != 2 || raised[0] != 2 || raised[1] != 4 || m.head() != 4 {
		t.Errorf("raised at %v, head %d", raised, m.head())
	}
	fails = errors.New("the API server is away")
	if err := add("source-emptied"); !errors.Is(err, eventlog.ErrUnavailable) {
		t.Errorf("Append without a raised mark = %v, want ErrUnavailable", err)
	}
}
