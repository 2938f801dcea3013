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

// marked is the log to which the domains append. It stores the highest acknowledged sequence. After some commits a process does something that cannot
// be undone: after a claim, which precedes all effects of a process, and after a point of no return. Append raises the mark outside the log before it
// returns such a commit's receipt. For other commits the mark is raised at the next renewal of the Lease. marked appends nothing once another process
// may be the leader, because that process would decide without knowing of the commit.
type marked struct {
	aggregate.Log
	raise func(ctx context.Context, seq uint64) error
	// tenure decides whether this process may append.
	tenure  *tenure
	appends *appends
	acked   atomic.Uint64
}

// noReturn are the types of events after which the mark must be raised before anything is done.
var noReturn = []string{ //nolint:gochecknoglobals // a constant
	".claimed.v",
	"dev.scute.move.verified.v",
	"dev.scute.move.source-emptied.v",
	"dev.scute.remediation.handed-over.v",
}

// Append implements aggregate.Log.
func (m *marked) Append(ctx context.Context, c eventlog.Commit) (eventlog.Receipt, error) {
	if err := m.tenure.held(); err != nil {
		return eventlog.Receipt{}, fmt.Errorf("%w: %w", eventlog.ErrUnavailable, err)
	}
	began := time.Now()
	receipt, err := m.Log.Append(ctx, c)
	m.appends.observe(c, time.Since(began), err)
	if err != nil {
		return receipt, err
	}
	m.saw(receipt.Seq)
	if !slices.ContainsFunc(c.Events, final) {
		return receipt, nil
	}
	if err := m.raise(ctx, receipt.Seq); err != nil {
		return receipt, fmt.Errorf("%w: commit %d is stored, but not yet acted on: %w", eventlog.ErrUnavailable, receipt.Seq, err)
	}
	return receipt, nil
}

func final(e eventlog.Event) bool {
	return slices.ContainsFunc(noReturn, func(t string) bool { return strings.Contains(e.Type, t) })
}

// saw stores the highest sequence.
func (m *marked) saw(seq uint64) {
	for old := m.acked.Load(); seq > old && !m.acked.CompareAndSwap(old, seq); old = m.acked.Load() {
	}
}

// head returns the highest sequence that is known to be acknowledged.
func (m *marked) head() uint64 { return m.acked.Load() }
