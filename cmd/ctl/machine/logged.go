package machine

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/remediation"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// logReader reads the remediations of machines from the log. Each read continues where the previous one ended.
type logReader struct {
	Log   *connect.Log
	folds map[string]*remediation.Fold
	after uint64
}

// Read applies new commits. It returns the state of each machine's owner by the machine's UID, and by the owner's UID if etcd or started remediations
// are recorded. Commits that cannot be decoded are skipped: the error, returned together with the states, names the first such owner.
func (l *logReader) Read(ctx context.Context) (map[types.UID]*remediator.State, error) {
	if l.folds == nil {
		l.folds = make(map[string]*remediation.Fold)
	}
	var unread error
	head, err := l.Log.Replay(ctx, l.after, func(r eventlog.Record) error {
		if r.Aggregate.Kind != eventlog.KindRemediation {
			return nil
		}
		f := l.folds[r.Aggregate.ID]
		if f == nil {
			f = remediation.NewFold()
			l.folds[r.Aggregate.ID] = f
		}
		if err := f.Apply(r); err != nil && unread == nil {
			unread = fmt.Errorf("%s: %w", r.Aggregate, err)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("reading the log at %s: %w", l.Log.Where, err)
	}
	l.after = head
	machines := make(map[types.UID]*remediator.State)
	for _, f := range l.folds {
		for uid := range f.State.Unhealthy {
			machines[uid] = &f.State
		}
		if !f.State.Etcd.At.IsZero() || len(f.State.Starts) > 0 {
			machines[f.State.Owner.UID] = &f.State
		}
		for _, a := range f.State.InProgress() {
			machines[a.Victim.UID] = &f.State
		}
	}
	return machines, unread
}
