package app

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"scute.dev/internal/timespan"
	"scute.dev/internal/trust"
)

// tenure is whether this process surely holds the Lease. A process that was stopped, or that cannot reach the API server, learns
// late that another one leads: leader election ends it up to ten seconds after it continues. It knows by its own clock that
// the Lease can have passed on, so that it appends nothing and writes to no cluster from then on. A nil tenure is that of a process
// without leader election: it always holds.
type tenure struct {
	now     func() time.Time // nil is time.Now
	renewed atomic.Pointer[renewal]
}

// renewal is a write of the Lease that succeeded.
type renewal struct {
	asked time.Time // when the request was sent: nobody saw the Lease renewed before
	lasts time.Duration
}

// surely is the share of the Lease's duration during which nobody else can hold it. The rest is for clocks that run at different
// speeds, and for requests on their way.
const surely = 0.8

func (t *tenure) clock() time.Time {
	if t.now != nil {
		return t.now()
	}
	return time.Now()
}

// begin is called before the Lease is written, and what it returns after that has succeeded: lasts is zero for a Lease that was given up.
func (t *tenure) begin() (written func(lasts time.Duration)) {
	if t == nil {
		return func(time.Duration) {}
	}
	asked := t.clock()
	return func(lasts time.Duration) { t.renewed.Store(&renewal{asked, lasts}) }
}

// held is nil while this process surely holds the Lease.
func (t *tenure) held() error {
	if t == nil {
		return nil
	}
	r := t.renewed.Load()
	if r == nil || r.lasts == 0 {
		return fmt.Errorf("this process does not hold Lease %s/%s", trust.LeaseNamespace, trust.LeaseName)
	}
	now := t.clock()
	// The monotonic clock does not advance while the machine is suspended, and the other one can be set.
	age := max(now.Sub(r.asked), now.Round(0).Sub(r.asked.Round(0)))
	if age < time.Duration(surely*float64(r.lasts)) {
		return nil
	}
	return fmt.Errorf("this process may no longer hold Lease %s/%s, which it renewed %s ago", trust.LeaseNamespace, trust.LeaseName, timespan.Text(age.Round(time.Millisecond)))
}

// fence sends nothing that can change a cluster unless this process surely holds the Lease.
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
		if err := f.tenure.held(); err != nil {
			if r.Body != nil {
				_ = r.Body.Close()
			}
			return nil, fmt.Errorf("not sent: %w", err)
		}
	}
	return f.next.RoundTrip(r)
}

// WrappedRoundTripper is what client-go looks through for.
func (f fence) WrappedRoundTripper() http.RoundTripper { return f.next }
