package machine

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/show"
	"scute.dev/cmd/ctl/term"
)

// pollInterval is the interval at which a watch reads the machines.
const pollInterval = 2 * time.Second

func (o *options) draw(p *snapshot) []string {
	_, wide := o.format.Text()
	return view{o.View()}.clusters(p.clusters, tableOptions{Served: p.objects.Served, All: o.all || len(o.names) > 0, Wide: wide})
}

// follow reads and shows the machines repeatedly until it is interrupted.
func (o *options) follow(ctx context.Context, r *reader) error {
	interrupted := cli.Interrupted(errors.New("interrupted: operations in progress continue"))
	screen := o.Screen(o.Env.Out)
	told := make(map[string]string)
	for first := true; ; first = false {
		p, err := r.read(ctx)
		switch {
		case ctx.Err() != nil:
			return interrupted
		case err != nil && first:
			return err
		case err != nil:
			o.ReportBroken(err)
		default:
			if first {
				o.notes(p)
			}
			if err := o.refresh(screen, p, told); err != nil {
				return err
			}
		}
		select {
		case <-ctx.Done():
			return interrupted
		case <-time.After(pollInterval):
		}
	}
}

// refresh shows the next picture: on a terminal in place of the previous one, otherwise only the changes.
func (o *options) refresh(screen *term.Screen, p *snapshot, told map[string]string) error {
	if o.Env.CanRedraw(o.Env.Out) {
		lines := o.draw(p)
		if len(p.clusters) == 0 {
			lines = []string{p.none()}
		}
		return screen.Draw(lines)
	}
	return o.Print(o.changedLines(p, told))
}

// etcdPrefix is the prefix of facts about an owner.
const etcdPrefix = "etcd: "

// changedLines returns the lines that have changed since the previous pictures, and records them in told.
func (o *options) changedLines(p *snapshot, told map[string]string) []string {
	now := o.Env.Now()
	v := view{show.View{Now: now}}
	facts := make(map[string]string)
	for _, c := range p.clusters {
		for _, owner := range c.Owners {
			name := c.Namespace + "/" + owner.Name
			switch q := owner.Quorum; {
			case q != nil:
				facts[name] = etcdPrefix + v.Quorum(q)
			case told[name] != "": // the problem no longer exists
				facts[name] = etcdPrefix + v.etcd(owner)
			}
			for _, m := range owner.Gone {
				facts[c.Namespace+"/"+m.Name] = v.fact("deleted", m)
			}
			for _, m := range owner.Machines {
				facts[c.Namespace+"/"+m.Name] = v.factOf(m)
			}
		}
	}
	for name, last := range told {
		_, there := facts[name]
		switch {
		case there:
		case strings.HasPrefix(last, etcdPrefix): // its owner is no longer shown, because none of its machines is
			delete(told, name)
		default:
			facts[name] = "deleted"
		}
	}
	var out []string
	for _, name := range slices.Sorted(maps.Keys(facts)) {
		if told[name] != facts[name] {
			out = append(out, fmt.Sprintf("%s %s %s", term.Exact(now), name, facts[name]))
		}
		if told[name] = facts[name]; facts[name] == "deleted" {
			delete(told, name)
		}
	}
	return out
}
