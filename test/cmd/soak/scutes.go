package main

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"time"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/inventory"
	"scute.dev/test/scuted"
	"scute.dev/test/soak"
)

// promise is a WorkflowRun that was started, and its expected end.
type promise struct {
	on   *side
	name string
	want v1alpha1.RunPhase
	maps []string // ConfigMaps that must exist in the end
	none []string // and those that must not
}

// moved begins a move of the cluster to the other side.
func (p *player) moved(ctx context.Context, f soak.Fault) (undo, string, error) {
	name, on, to, err := p.begin(ctx, f)
	if err != nil {
		return nil, "", err
	}
	return nil, fmt.Sprintf("Move %s from %s to %s", name, on.Side.Name(), to.Side.Name()), nil
}

// moveAborted begins a move and aborts it after the fault's duration.
func (p *player) moveAborted(ctx context.Context, f soak.Fault) (undo, string, error) {
	name, on, to, err := p.begin(ctx, f)
	if err != nil {
		return nil, "", err
	}
	abort := func(ctx context.Context) error {
		m := scuted.NewMove(roam, name, to.Installation)
		return merge(ctx, on, m, `{"spec":{"abort":true}}`)
	}
	return abort, fmt.Sprintf("Move %s from %s to %s", name, on.Side.Name(), to.Side.Name()), nil
}

func (p *player) begin(ctx context.Context, f soak.Fault) (name string, on, to *side, err error) {
	if on, err = p.settled(ctx, f.Where); err != nil {
		return "", nil, nil, err
	}
	if err := p.calm(ctx, on, f.Where); err != nil {
		return "", nil, nil, err
	}
	to = p.sides[0]
	if to == on {
		to = p.sides[1]
	}
	name = fmt.Sprintf("move-%d", f.Number)
	return name, on, to, on.admin.Create(ctx, scuted.NewMove(roam, name, to.Installation, split(f.Where).Name))
}

// calm waits until a cluster is available and no remediation is in progress, as a user would before a move.
func (p *player) calm(ctx context.Context, on *side, cluster string) error {
	key := split(cluster)
	for {
		missing, err := on.Side.Missing(ctx, key.Namespace, key.Name)
		if err == nil && len(missing) == 0 {
			missing, err = inventory.LeftOfRemediations(ctx, on.admin, key.Namespace, key.Name)
		}
		if err == nil && len(missing) == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return withheld("%s is not calm: %s", cluster, strings.Join(missing, "; "))
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// runStarted starts a WorkflowRun that succeeds, or one that fails and is rolled back.
func (p *player) runStarted(ctx context.Context, f soak.Fault) (undo, string, error) {
	r := promise{on: p.side(f.Where), name: fmt.Sprintf("run-%d", f.Number), want: v1alpha1.RunSucceeded}
	first, second := r.name+"-a", r.name+"-b"
	spec := "tasks:\n" + apply("a", first, "") + apply("b", second, ", needs: [a]")
	wait := "- {name: wait, kind: Wait, needs: [b], %s with: {object: {apiVersion: v1, kind: ConfigMap, name: %s}, for: ready}}\n"
	if f.Pick%3 == 0 {
		r.want, r.none = v1alpha1.RunRolledBack, []string{first, second}
		spec = "failurePolicy: Rollback\n" + spec + fmt.Sprintf(wait, "timeout: 2s,", r.name+"-nowhere")
	} else {
		r.maps = []string{first, second}
		spec += fmt.Sprintf(wait, "", first)
	}
	w, err := scuted.NewWorkflowRun(runsNamespace, r.name, account, spec)
	if err != nil {
		return nil, "", err
	}
	if err := r.on.admin.Create(ctx, w); err != nil {
		return nil, "", err
	}
	p.mu.Lock()
	p.runs = append(p.runs, r)
	p.mu.Unlock()
	return nil, fmt.Sprintf("WorkflowRun %s, which is to end %s", r.name, r.want), nil
}

// apply returns a task that creates a ConfigMap. Its retries outlast an API server that is down for a while.
func apply(task, name, more string) string {
	return "- {name: " + task + ", kind: Apply" + more + ", retry: {max: 100, delay: 500ms, maxDelay: 2s}, with: {manifests: [" +
		strings.ReplaceAll("{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {v: \"1\"}}", "NAME", name) + "]}}\n"
}

func (p *player) scutedKilled(ctx context.Context, f soak.Fault) (undo, string, error) {
	on, free, err := p.take(ctx, f.Where)
	if err != nil {
		return nil, "", err
	}
	err = on.keeper.kill(ctx)
	return func(context.Context) error {
		defer free()
		on.keeper.release()
		return nil
	}, "SIGKILL", err
}

// scutedStopped suspends the process, and continues it.
func (p *player) scutedStopped(ctx context.Context, f soak.Fault) (undo, string, error) {
	on, free, err := p.take(ctx, f.Where)
	if err != nil {
		return nil, "", err
	}
	d, err := on.keeper.signal(syscall.SIGSTOP)
	return func(context.Context) error {
		defer free()
		if d.Exited() == nil {
			return syscall.Kill(d.PID(), syscall.SIGCONT)
		}
		return nil
	}, "SIGSTOP", err
}

// take reserves the servers of a side until free is called.
func (p *player) take(ctx context.Context, name string) (on *side, free func(), err error) {
	on = p.side(name)
	select {
	case on.server <- struct{}{}:
		return on, func() { <-on.server }, nil
	case <-ctx.Done():
		return nil, nil, withheld("another fault of the servers of %s is on", name)
	}
}

// server stops a server of a side and starts it again.
func (p *player) server(ctx context.Context, f soak.Fault, what string, stop, start func(context.Context, *side) error) (undo, string, error) {
	on, free, err := p.take(ctx, f.Where)
	if err != nil {
		return nil, "", err
	}
	err = stop(ctx, on)
	return func(context.Context) error {
		// A start must not be interrupted: it has its own time limit.
		bounded, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
		defer cancel()
		if err := start(bounded, on); err != nil {
			return err
		}
		free()
		return nil
	}, what, err
}

func (p *player) apiServerKilled(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.server(ctx, f, "kube-apiserver, SIGKILL",
		func(ctx context.Context, on *side) error { return on.Side.KillAPIServer(ctx) },
		func(ctx context.Context, on *side) error { return on.Side.StartAPIServer(ctx) })
}

func (p *player) etcdKilled(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.server(ctx, f, "etcd of the management cluster, SIGKILL",
		func(ctx context.Context, on *side) error { return on.Side.KillEtcd(ctx) },
		func(ctx context.Context, on *side) error { return on.Side.StartEtcd(ctx) })
}

func (p *player) controllersStopped(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.server(ctx, f, "Cluster API's controllers and webhooks",
		func(_ context.Context, on *side) error { return on.Side.StopControllers() },
		func(ctx context.Context, on *side) error { return on.Side.StartControllers(ctx) })
}
