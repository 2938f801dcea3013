package machine

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
)

// snapshot is the state of the machines at one time.
type snapshot struct {
	machines  []*Machine
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

	log    *logReader
	failed error // the error of opening the log
	found  bool  // the named machines were found once
}

func (r *reader) close() {
	if r.log != nil {
		_ = r.log.Log.Close()
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

func (r *reader) readLog(ctx context.Context, objects *Objects) (err error) {
	if r.failed != nil {
		return r.failed
	}
	if r.log == nil {
		log, err := r.Flags.Log(ctx, r.Env.Err)
		if err != nil {
			r.failed = err
			return err
		}
		r.log = &logReader{Log: log}
	}
	ctx, cancel := context.WithTimeout(ctx, r.Flags.LogTimeout)
	defer cancel()
	objects.States, err = r.log.Read(ctx)
	return err
}

// selected returns the machines of the cluster and with the names that the user named.
func (r *reader) selected(objects *Objects) ([]*Machine, error) {
	var clusters, names []string
	for i := range objects.Clusters {
		clusters = append(clusters, objects.Clusters[i].Name)
	}
	if r.options.cluster != "" && !slices.Contains(clusters, r.options.cluster) {
		return nil, r.missing("cluster", r.options.cluster, clusters)
	}
	all := objects.Join()
	list := []*Machine{}
	for _, m := range all {
		names = append(names, m.Name)
		if (r.options.cluster == "" || m.Cluster == r.options.cluster) && (len(r.names) == 0 || slices.Contains(r.names, m.Name)) {
			list = append(list, m)
		}
	}
	for _, name := range r.names {
		if !r.found && !slices.ContainsFunc(list, func(m *Machine) bool { return m.Name == name }) { // a watched machine may be deleted
			return nil, r.missing("machine", name, names)
		}
	}
	r.found = true
	return list, nil
}

// missing returns an error about a name, with the nearest one.
func (r *reader) missing(kind, name string, names []string) error {
	meant := ""
	if near := cli.Nearest(name, names); near != "" {
		meant = fmt.Sprintf(", did you mean %q?", near)
	}
	return fmt.Errorf("%s %s: there is no such %s in namespace %s on %s%s", kind, name, kind, r.namespace, r.cluster.Config.Host, meant)
}
