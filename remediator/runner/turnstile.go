package runner

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scute.dev/aggregate"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// turnstile is the aggregate in which every start is recorded first, so that two processes that
// both act as the leader do not exceed a limit together. The aggregate of an owner does not contain
// the starts for other owners.
//
// A process first appends the name of the owner to the turnstile (a passage), and then appends the
// start to the aggregate of the owner. If other processes have appended to the turnstile since its
// last read, it counts the starts for the owners that they named, and decides again. The start for
// the last named owner may not have been appended yet. So the process claims that owner: after the
// claim, the start either is in the log or can no longer be appended. A process that passes the
// turnstile has counted all earlier passages in this way. A passage is valid for any process that
// starts something for the named owner, until another process appends to the turnstile. If a
// process dies after its passage, the next process does not have to pass again.
const turnstile = "fleet"

// admissions are passages through the turnstile.
type admissions struct {
	seq    uint64
	owners []remediator.Owner // the named owners
	holder string             // the process that named the last owner
}

// apply adds the passages in a commit.
func (p *admissions) apply(catalog *eventlog.Catalog[remediator.Event], r eventlog.Record) error {
	err := catalog.Fold(r, func(e remediator.Event, _ time.Time) {
		if admitted, ok := e.(remediator.Admitted); ok {
			p.owners, p.holder = append(p.owners, admitted.Owner), admitted.Holder
		}
	})
	if err == nil {
		p.seq = r.Seq
	}
	return err
}

// admit passes the turnstile before something is started for an owner. again reports whether other
// processes have passed since this process read it last, so that everything must be decided again.
// The caller holds startMu.
func (r *Runner) admit(ctx context.Context, owner remediator.Owner) (again bool, err error) {
	if len(r.uncounted.owners) == 0 {
		err := r.turnstile.Append(ctx, remediator.Admitted{Holder: r.Incarnation, Owner: owner})
		if !errors.Is(err, eventlog.ErrConflict) {
			return false, err
		}
	}
	records, err := r.Log.Read(ctx, r.turnstile.Name, r.turnstile.Seq)
	if err != nil {
		return false, err
	}
	if len(records) == 0 && len(r.uncounted.owners) == 1 && r.uncounted.owners[0].UID == owner.UID {
		return false, nil // the passage of an earlier process
	}
	for _, record := range records {
		if err := r.uncounted.apply(r.turnstile.Catalog, record); err != nil {
			return false, err
		}
	}
	for i, named := range r.uncounted.owners {
		claim := i == len(r.uncounted.owners)-1 && r.uncounted.holder != r.Incarnation
		if err := r.countOwner(ctx, named, claim); err != nil {
			return false, fmt.Errorf("applying what another process has started for %s: %w", named.ID(), err)
		}
	}
	r.turnstile.Seq, r.uncounted.owners = r.uncounted.seq, nil
	return true, nil
}

// countOwner counts the starts in the log for an owner. If claim is set, it also claims the owner,
// so that no other process can start anything for it. If this program cannot read an event of the
// owner, it counts only the earlier events: the turns of this owner fail, but no other owner waits
// for it.
func (r *Runner) countOwner(ctx context.Context, owner remediator.Owner, claim bool) error {
	agg := r.root(owner.ID(), new(remediator.State), 0)
	for {
		err := agg.Read(ctx)
		var unreadable *aggregate.UnreadableError
		if errors.As(err, &unreadable) {
			r.Logger.Warn("the events of an owner cannot be read; nothing starts for it", "owner", agg.Name.ID, "error", err)
			agg.Seq = unreadable.Last
		} else if err != nil {
			return err
		}
		if !claim || agg.State.Holder == r.Incarnation {
			break
		}
		if err = agg.Append(ctx, r.withOwner(agg, []remediator.Event{remediator.Claimed{Holder: r.Incarnation}})...); err == nil {
			break
		} else if !errors.Is(err, eventlog.ErrConflict) {
			return err
		}
		agg = r.root(owner.ID(), new(remediator.State), 0)
	}
	e := r.tracker(owner)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.setPast(e, owner.Namespace, agg.State)
	return nil
}
