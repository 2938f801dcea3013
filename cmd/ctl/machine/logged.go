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

// Logged follows what the log has of machines. Each reading continues where the previous one ended.
type Logged struct {
	Log   *connect.Log
	folds map[string]*remediation.Fold
	after uint64
}

// Read folds in what is new, and says what the log has of each machine, and of each owner whose etcd it knows, or for which something was begun. An owner that cannot be read is left out; the first one is
// in the error, which comes with all others.
func (l *Logged) Read(ctx context.Context) (map[types.UID]*remediator.State, error) {
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
		if f.State.Etcd != nil || len(f.State.Starts) > 0 {
			machines[f.State.Owner.UID] = &f.State
		}
		for _, a := range f.State.InProgress() {
			machines[a.Victim.UID] = &f.State
		}
	}
	return machines, unread
}
