package remediation

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/internal/sleep"
	"scute.dev/remediator"
)

type logStatus struct {
	Read  bool   `json:"read"`
	Error string `json:"error,omitempty"`
}

// machineSource reads machines from the objects of a cluster, and from the log of its daemon.
type machineSource struct {
	cluster   string
	all, live bool

	session *kit.Session[*machine]
	log     logStatus        // of the last read
	failed  error            // error of opening the log
	folds   map[string]*Fold // nil before the log is opened
	after   uint64           // last commit read
	noted   bool
}

// List reads the machines of a namespace, or of all namespaces. It returns no error if the log
// cannot be read; only s.log reports that.
func (s *machineSource) List(ctx context.Context, namespace string) ([]*machine, error) {
	objects, err := Read(ctx, s.session.Cluster, namespace)
	if err != nil {
		return nil, err
	}
	s.log = logStatus{}
	if !s.live && objects.Served { // without scute's kinds there is no daemon
		if err := s.readLog(ctx, objects); err != nil {
			s.log.Error = err.Error()
		}
		if ctx.Err() != nil {
			return nil, cli.Interrupted(errors.New("interrupted"))
		}
		s.log.Read = objects.States != nil
	}
	if !s.noted {
		s.noted = true
		s.note(objects.Forbidden)
	}
	return s.inCluster(objects)
}

func (s *machineSource) note(forbidden []string) {
	if len(forbidden) > 0 {
		s.session.Env.Notef("You may not list %s: their data is missing.", strings.Join(forbidden, ", "))
	}
	if s.log.Error != "" {
		s.session.Env.Notef("The log could not be read, so only the objects are shown; rules and times are missing: %s", s.log.Error)
	}
}

// inCluster returns the machines of the cluster that the user named. If the user named none, it
// returns all machines.
func (s *machineSource) inCluster(objects *Objects) ([]*machine, error) {
	var clusters []string
	for i := range objects.Clusters {
		clusters = append(clusters, objects.Clusters[i].Name)
	}
	if s.cluster != "" && !slices.Contains(clusters, s.cluster) {
		return nil, fmt.Errorf("cluster %s: there is no such cluster on %s%s", s.cluster, s.session.Cluster.Config.Host, cli.DidYouMean(s.cluster, clusters))
	}
	return slices.DeleteFunc(objects.machines(), func(m *machine) bool { return s.cluster != "" && m.Cluster != s.cluster }), nil
}

// Get reads one machine.
func (s *machineSource) Get(ctx context.Context, key types.NamespacedName) (*machine, error) {
	list, err := s.List(ctx, key.Namespace)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(list, func(m *machine) bool { return m.Name == key.Name })
	if i < 0 {
		return nil, fmt.Errorf("machine %s in namespace %s on %s: %w", key.Name, key.Namespace, s.session.Cluster.Config.Host, kit.ErrNotFound)
	}
	list[i].named = true
	return list[i], nil
}

// Watch reads one machine repeatedly.
func (s *machineSource) Watch(ctx context.Context, key types.NamespacedName, fn func(*machine) (enough bool)) error {
	seen := false
	return s.poll(ctx, func() (bool, error) {
		m, err := s.Get(ctx, key)
		if seen && errors.Is(err, kit.ErrNotFound) {
			err = fmt.Errorf("%w: %w", err, kit.ErrGone)
		}
		seen = seen || err == nil
		return err == nil && fn(m), err
	})
}

// WatchAll reads the machines of a namespace, or of all namespaces, repeatedly.
func (s *machineSource) WatchAll(ctx context.Context, namespace string, fn func([]*machine) (enough bool)) error {
	return s.poll(ctx, func() (bool, error) {
		list, err := s.List(ctx, namespace)
		return err == nil && fn(list), err
	})
}

const pollInterval = 2 * time.Second

// poll calls read repeatedly until read returns enough. It fails if the first call fails or the
// machine was deleted. It only reports all other errors.
func (s *machineSource) poll(ctx context.Context, read func() (enough bool, err error)) error {
	for first := true; ; first = false {
		enough, err := read()
		switch {
		case ctx.Err() != nil || enough:
			return ctx.Err()
		case err != nil && (first || errors.Is(err, kit.ErrNotFound)):
			return err
		case err != nil:
			s.session.ReportBroken(err)
		}
		if err := sleep.For(ctx, pollInterval); err != nil {
			return err
		}
	}
}

// readLog reads the commits that were stored since the last call. In objects.States it sets the
// state of each owner, for the UIDs of the owner's machines and, if remediations were started, for
// the UID of the owner. It skips commits that it cannot decode, and returns an error that names the
// owner of the first of them.
func (s *machineSource) readLog(ctx context.Context, objects *Objects) (unread error) {
	if s.folds == nil {
		s.folds, s.failed = make(map[string]*Fold), s.session.ConnectLog(ctx)
	}
	if s.failed != nil {
		return s.failed
	}
	ctx, cancel := context.WithTimeout(ctx, s.session.Flags.LogTimeout)
	defer cancel()
	head, err := s.session.Log.Replay(ctx, s.after, func(record eventlog.Record) error {
		if record.Aggregate.Kind != eventlog.KindRemediation {
			return nil
		}
		f := s.folds[record.Aggregate.ID]
		if f == nil {
			f = NewFold()
			s.folds[record.Aggregate.ID] = f
		}
		if err := f.Apply(record); err != nil && unread == nil {
			unread = fmt.Errorf("%s: %w", record.Aggregate, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("reading the log at %s: %w", s.session.Log.Where, err)
	}
	s.after, objects.States = head, make(map[types.UID]*remediator.State)
	for _, f := range s.folds {
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
