package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/eventlog"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// ledger is the history of a move in the log: the processes that worked on it, how far each came, and how often each
// object was created and deleted.
type ledger struct {
	state            mover.State
	lives            []life
	created, deleted map[object.Ref]int
}

// life is one process of scuted: from its claim to the last commit before the next claim.
type life struct {
	holder string
	phase  mover.Phase
	counts v1alpha1.MoveCounts
}

// readLedger reads a move's events from a log that a daemon serves.
func readLedger(ctx context.Context, address, moveID string) (*ledger, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	log, err := eventlog.Connect(ctx, eventlog.ExternalOptions{URL: "nats://" + address})
	if err != nil {
		return nil, err
	}
	defer log.Close()
	records, err := log.Read(ctx, eventlog.Aggregate{Kind: eventlog.KindMove, ID: moveID}, 0)
	if err != nil {
		return nil, err
	}
	l, catalog := &ledger{}, mover.NewCatalog()
	for _, r := range records {
		events, err := r.Events()
		if err != nil {
			return nil, err
		}
		for _, ev := range events {
			fact, err := catalog.Decode(ev)
			if err != nil {
				return nil, fmt.Errorf("reading commit %d: %w", r.Seq, err)
			}
			l.apply(fact, ev.Time)
		}
	}
	return l, nil
}

func (l *ledger) apply(fact mover.Event, at time.Time) {
	l.state.Apply(fact, at)
	switch e := fact.(type) {
	case mover.Claimed:
		if n := len(l.lives); n == 0 || l.lives[n-1].holder != e.Holder {
			l.lives = append(l.lives, life{holder: e.Holder})
		}
	case mover.Created:
		for ref := range e.Objects {
			add(&l.created, ref)
		}
	case mover.Deleted:
		for _, ref := range e.Objects {
			add(&l.deleted, ref)
		}
	}
	if n := len(l.lives); n > 0 {
		l.lives[n-1].phase, l.lives[n-1].counts = l.state.Phase, l.state.Counts
	}
}

func add(counts *map[object.Ref]int, ref object.Ref) {
	if *counts == nil {
		*counts = make(map[object.Ref]int)
	}
	(*counts)[ref]++
}

// once reports whether a number of objects are recorded, each exactly once.
func once(counts map[object.Ref]int, objects int) bool {
	for _, n := range counts {
		if n != 1 {
			return false
		}
	}
	return len(counts) == objects
}

// died describes where a life ended, and reports whether that was in the middle of a phase.
func (l life) died(phase mover.Phase) (where string, inside bool) {
	done, of := progress(l.phase, l.counts)
	return fmt.Sprintf("%s (%d of %d)", l.phase, done, of), l.phase == phase && done > 0 && done < of
}

// progress returns the progress of the phases in which objects are created or deleted.
func progress(phase mover.Phase, c v1alpha1.MoveCounts) (done, of int) {
	if slices.Contains([]mover.Phase{mover.PhaseVerified, mover.PhaseDeleting}, phase) {
		return c.Deleted, c.ToDelete
	}
	return c.Created, c.Objects
}
