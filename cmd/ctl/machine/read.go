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
	clusters  []*Cluster
	objects   *Objects
	log       logStatus
	namespace string
}

// logStatus is the result of reading the log.
type logStatus struct {
	Read  bool   `json:"read"`
	Error string `json:"error,omitempty"`
}

func (p *snapshot) none() string {
	if p.namespace == "" {
		return "There are no clusters."
	}
	return fmt.Sprintf("There are no clusters in namespace %s.", p.namespace)
}

// reader reads the machines repeatedly.
type reader struct {
	*options
	cluster   *connect.Cluster
	namespace string

	log    *LogReader
	failed error // the error of opening the log
	found  bool  // the named machines were found once
}

func (r *reader) close() {
	if r.log != nil {
		_ = r.log.Log.Close()
	}
}

// read reads the machines once. If the log cannot be read, it records the error in the picture.
func (r *reader) read(ctx context.Context) (*snapshot, error) {
	objects, err := Read(ctx, r.cluster, r.namespace)
	if err != nil {
		return nil, err
	}
	p := &snapshot{objects: objects, namespace: r.namespace}
	if !r.live && objects.Served { // without scute's kinds there is no daemon
		err := r.readLog(ctx, objects)
		if ctx.Err() != nil {
			return nil, cli.Interrupted(errors.New("interrupted"))
		}
		p.log.Read = objects.States != nil
		if err != nil {
			p.log.Error = err.Error()
		}
	}
	p.clusters = objects.Join(r.options.cluster)
	if r.options.cluster != "" && len(p.clusters) == 0 {
		return nil, fmt.Errorf("cluster %s: there is no such cluster in namespace %s on %s%s",
			r.options.cluster, r.namespace, r.cluster.Config.Host, didYouMean(r.options.cluster, names(objects.Clusters)))
	}
	return p, r.selectNamed(p)
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
		r.log = &LogReader{Log: log}
	}
	ctx, cancel := context.WithTimeout(ctx, r.Flags.LogTimeout)
	defer cancel()
	objects.States, err = r.log.Read(ctx)
	return err
}

// selectNamed keeps only the machines that the user named.
func (r *reader) selectNamed(p *snapshot) error {
	if len(r.names) == 0 {
		return nil
	}
	found := make(map[string]bool)
	for _, c := range p.clusters {
		for _, o := range c.Owners {
			o.Machines = slices.DeleteFunc(o.Machines, func(m *Machine) bool { return !slices.Contains(r.names, m.Name) })
			o.Gone = slices.DeleteFunc(o.Gone, func(m *Machine) bool { return !slices.Contains(r.names, m.Name) })
			for _, m := range slices.Concat(o.Machines, o.Gone) {
				found[m.Name] = true
			}
		}
		c.Owners = slices.DeleteFunc(c.Owners, func(o *Owner) bool { return len(o.Machines)+len(o.Gone) == 0 })
	}
	p.clusters = slices.DeleteFunc(p.clusters, func(c *Cluster) bool { return len(c.Owners) == 0 })
	for _, name := range r.names {
		if !found[name] && !r.found { // a watched machine may be deleted
			return fmt.Errorf("machine %s: there is no such machine in namespace %s on %s%s",
				name, r.namespace, r.cluster.Config.Host, didYouMean(name, names(p.objects.Machines)))
		}
	}
	r.found = true
	return nil
}

// didYouMean returns a question with the name that is nearest to the typed one; "" if no name is near.
func didYouMean(typed string, names []string) string {
	if near := cli.Nearest(typed, names); near != "" {
		return fmt.Sprintf(", did you mean %q?", near)
	}
	return ""
}

func names[T any, P interface {
	*T
	GetName() string
}](list []T) []string {
	out := make([]string, len(list))
	for i := range list {
		out[i] = P(&list[i]).GetName()
	}
	return out
}
