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

// marked is the log as the domains write to it. It knows the highest sequence that was acknowledged, and raises the mark
// outside the log before it answers for a commit after which something is done that cannot be undone: a claim, which
// comes before every effect of a process, and a point of no return. For other commits the mark follows at the next renewal
// of the Lease. It appends nothing once another process may lead: that one would not know of it when it decides.
type marked struct {
	aggregate.Log
	raise func(ctx context.Context, seq uint64) error
	// tenure is whether this process may append at all.
	tenure  *tenure
	appends *appends
	acked   atomic.Uint64
}

// noReturn are the events after which the mark must be raised before anything is done.
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

// saw keeps the highest sequence.
func (m *marked) saw(seq uint64) {
	for old := m.acked.Load(); seq > old && !m.acked.CompareAndSwap(old, seq); old = m.acked.Load() {
	}
}

// head is the highest sequence that is known to be acknowledged.
func (m *marked) head() uint64 { return m.acked.Load() }
