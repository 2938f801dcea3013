package app

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
)

// watermarkLog is the log to which the domains append. It stores the highest acknowledged sequence. After some commits a process does something that cannot
// be undone: after a claim, which precedes all effects of a process, and after a point of no return. Append raises the mark outside the log before it
// returns such a commit's receipt. For other commits the mark is raised at the next renewal of the Lease. marked appends nothing once another process
// may be the leader, because that process would decide without knowing of the commit.
type watermarkLog struct {
	aggregate.Log
	raiseWatermark func(ctx context.Context, seq uint64) error
	// tenure decides whether this process may append.
	tenure  *tenure
	appends *appends
	acked   atomic.Uint64
}

// irreversibleEvents are the types of events after which the mark must be raised before anything is done.
var irreversibleEvents = []string{ //nolint:gochecknoglobals // a constant
	".claimed.v",
	"dev.scute.move.verified.v",
	"dev.scute.move.source-emptied.v",
	"dev.scute.remediation.handed-over.v",
}

// Append implements aggregate.Log.
func (m *watermarkLog) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if err := m.tenure.check(); err != nil {
		return eventlog.Receipt{}, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	began := time.Now()
	receipt, err := m.Log.Append(ctx, c)
	m.appends.observe(c, time.Since(began), err)
	if err != nil {
		return receipt, err
	}
	m.recordSequence(receipt.Seq)
	if !slices.ContainsFunc(c.Events, isIrreversible) {
		return receipt, nil
	}
	if err := m.raiseWatermark(ctx, receipt.Seq); err != nil {
		return receipt, fmt.Errorf("%w: commit %d is stored, but not yet acted on: %w", eventlog.ErrUnavailable, receipt.Seq, err)
	}
	return receipt, nil
}

func isIrreversible(e eventlog.Event) bool {
	return slices.ContainsFunc(irreversibleEvents, func(t string) bool { return strings.Contains(e.Type, t) })
}

// recordSequence stores the highest sequence.
func (m *watermarkLog) recordSequence(seq uint64) {
	for old := m.acked.Load(); seq > old && !m.acked.CompareAndSwap(old, seq); old = m.acked.Load() {
	}
}

// head returns the highest sequence that is known to be acknowledged.
func (m *watermarkLog) head() uint64 { return m.acked.Load() }
