package remediation

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/eventlog"
	"scute.dev/remediator"
)

// snapshot is the state of the machines at one time.
type snapshot struct {
	machines  []*machine
	forbidden []string // kinds that may not be listed
	log       logStatus
}

// logStatus is the result of reading the log.
type logStatus struct {
	Read  bool   `json:"read"`
	Error string `json:"error,omitempty"`
}

// reader reads the machines repeatedly.
type reader struct {
	*options
	cluster   *connect.Cluster
	namespace string

	log    *connect.Log
	failed error // the error of opening the log
	folds  map[string]*Fold
	after  uint64 // the last commit that was read
	found  bool   // the named machines were found once
}

func (r *reader) close() {
	if r.log != nil {
		_ = r.log.Close()
	}
}

// read reads the machines once. If the log cannot be read, it records the error in the snapshot.
func (r *reader) read(ctx context.Context) (*snapshot, error) {
	objects, err := Read(ctx, r.cluster, r.namespace)
	if err != nil {
		return nil, err
	}
	p := &snapshot{forbidden: objects.Forbidden}
	if !r.live && objects.Served { // without scute's kinds there is no daemon
		if err := r.readLog(ctx, objects); err != nil {
			p.log.Error = err.Error()
		}
		if ctx.Err() != nil {
			return nil, cli.Interrupted(errors.New("interrupted"))
		}
		p.log.Read = objects.States != nil
	}
	p.machines, err = r.selected(objects)
	return p, err
}

// readLog reads the commits since the last call. It sets the state of each machine's owner by the machine's UID, and by the owner's UID if remediations
// were started. It skips commits that cannot be decoded: the error names the first such owner.
func (r *reader) readLog(ctx context.Context, objects *Objects) (unread error) {
	if r.log == nil && r.failed == nil {
		r.folds = make(map[string]*Fold)
		r.log, r.failed = r.Flags.Log(ctx, r.Env.Err)
	}
	if r.failed != nil {
		return r.failed
	}
	ctx, cancel := context.WithTimeout(ctx, r.Flags.LogTimeout)
	defer cancel()
	head, err := r.log.Replay(ctx, r.after, func(record eventlog.Record) error {
		if record.Aggregate.Kind != eventlog.KindRemediation {
			return nil
		}
		f := r.folds[record.Aggregate.ID]
		if f == nil {
			f = NewFold()
			r.folds[record.Aggregate.ID] = f
		}
		if err := f.Apply(record); err != nil && unread == nil {
			unread = fmt.Errorf("%s: %w", record.Aggregate, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the log at %s: %w", r.log.Where, err)
	}
	r.after, objects.States = head, make(map[types.UID]*remediator.State)
	for _, f := range r.folds {
		for uid := range f.State.Unhealthy {
			objects.States[uid] = &f.State
		}
		for _, a := range f.State.InProgress() {
			objects.States[a.Victim.UID] = &f.State
		}
		if len(f.State.Starts) > 0 {
			objects.States[f.State.Owner.UID] = &f.State
		}
	}
	return unread
}

// selected returns the machines of the cluster and with the names that the user named.
func (r *reader) selected(objects *Objects) ([]*machine, error) {
	var clusters, names []string
	for i := range objects.Clusters {
		clusters = append(clusters, objects.Clusters[i].Name)
	}
	if r.options.cluster != "" && !slices.Contains(clusters, r.options.cluster) {
		return nil, r.missing("cluster", r.options.cluster, clusters)
	}
	all := objects.Join()
	list := []*machine{}
	for _, m := range all {
		names = append(names, m.Name)
		if (r.options.cluster == "" || m.Cluster == r.options.cluster) && (len(r.names) == 0 || slices.Contains(r.names, m.Name)) {
			list = append(list, m)
		}
	}
	for _, name := range r.names {
		if !r.found && !slices.ContainsFunc(list, func(m *machine) bool { return m.Name == name }) { // a watched machine may be deleted
			return nil, r.missing("machine", name, names)
		}
	}
	r.found = true
	return list, nil
}

// missing returns an error about a name, with the nearest one.
func (r *reader) missing(kind, name string, names []string) error {
	return fmt.Errorf("%s %s: there is no such %s in namespace %s on %s%s", kind, name, kind, r.namespace, r.cluster.Config.Host, cli.DidYouMean(name, names))
}
