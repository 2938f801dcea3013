package app

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"scute.dev/internal/trust"
	"scute.dev/view"
)

// tenure determines whether this process certainly holds the Lease. A process that was suspended or
// cannot reach the API server learns late that it has lost the Lease: leader election ends it up to
// ten seconds after it continues. tenure therefore uses the local clock, and forbids appends and
// writes to clusters from the time when another process may have acquired the Lease. A nil tenure
// (no leader election) always permits them.
type tenure struct {
	now     func() time.Time // nil is time.Now
	renewed atomic.Pointer[renewal]
}

type renewal struct {
	requestedAt time.Time // when the request was sent: the Lease cannot have been renewed earlier
	duration    time.Duration
}

// safeFraction is the fraction of the Lease's duration for which no other process can hold the
// Lease. The rest allows for clock drift and for requests in flight.
const safeFraction = 0.8

func (t *tenure) clock() time.Time {
	if t.now != nil {
		return t.now()
	}
	return time.Now()
}

// beginRenewal records that a write of the Lease begins. After the write has succeeded, the caller
// must call written with the duration of the Lease, or with 0 if the Lease was released.
func (t *tenure) beginRenewal() (written func(lasts time.Duration)) {
	if t == nil {
		return func(time.Duration) {}
	}
	asked := t.clock()
	return func(lasts time.Duration) { t.renewed.Store(&renewal{asked, lasts}) }
}

// check returns an error unless this process certainly holds the Lease.
func (t *tenure) check() error {
	if t == nil {
		return nil
	}
	r := t.renewed.Load()
	if r == nil || r.duration == 0 {
		return fmt.Errorf("this process does not hold Lease %s/%s", trust.LeaseNamespace, trust.LeaseName)
	}
	now := t.clock()
	// The monotonic clock stops while the machine is suspended, and the wall clock can be set.
	age := max(now.Sub(r.requestedAt), now.Round(0).Sub(r.requestedAt.Round(0)))
	if age < time.Duration(safeFraction*float64(r.duration)) {
		return nil
	}
	return fmt.Errorf("this process may no longer hold Lease %s/%s, which it renewed %s ago", trust.LeaseNamespace, trust.LeaseName, view.Duration(age.Round(time.Millisecond)))
}

// fence wraps a transport so that it sends requests that may change a cluster only while this
// process certainly holds the Lease.
func (t *tenure) fence(next http.RoundTripper) http.RoundTripper {
	if t == nil {
		return next
	}
	return fence{t, next}
}

type fence struct {
	tenure *tenure
	next   http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (f fence) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		if err := f.tenure.check(); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, fmt.Errorf("not sent: %w", err)
		}
	}
	return f.next.RoundTrip(r)
}

// WrappedRoundTripper returns the wrapped transport, for client-go.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }
