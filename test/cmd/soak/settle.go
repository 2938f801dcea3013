package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/inventory"
	"scute.dev/test/scuted"
	"scute.dev/test/soak"
)

const (
	// settleTime bounds the time until everything has settled, on a busy machine. A machine that never joins may be
	// waited for as long as the policy's checks.nodeStartup, and then be replaced within its timeouts: 11 minutes.
	settleTime = 13 * time.Minute
	// calm is how long everything must stay settled.
	calm = 3 * time.Second
)

// settle waits until everything is as it must be without faults, and stays so. The error lists what is missing.
func (w *watcher) settle(ctx context.Context, what string) error {
	started := time.Now()
	ctx, cancel := context.WithTimeout(ctx, settleTime)
	defer cancel()
	var missing []string
	since, told := time.Time{}, started
	for {
		if err := w.takeBack(ctx); err != nil {
			w.report.note("undo", "taking back what was said to remediations: %v", err)
		}
		now := w.unsettled(ctx)
		if ctx.Err() == nil { // otherwise the reasons of the last check are more useful
			missing = now
		}
		switch {
		case len(now) > 0:
			since = time.Time{}
		case since.IsZero():
			since = time.Now()
		case time.Since(since) > calm:
			w.report.say("settled", "%s: after %s", what, time.Since(started).Round(time.Second))
			return nil
		}
		if len(now) > 0 && time.Since(told) > 10*time.Second {
			told = time.Now()
			w.report.say("waiting", "%s: %s", what, strings.Join(now, "; "))
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("settle: %s: not after %s: %s", what, time.Since(started).Round(time.Second), strings.Join(missing, "; "))
		case <-time.After(500 * time.Millisecond):
		}
	}
}

// unsettled returns what has not settled yet.
func (w *watcher) unsettled(ctx context.Context) []string {
	var missing []string
	for _, check := range []func(context.Context) ([]string, error){w.daemonsMissing, w.movesMissing, w.runsMissing, w.policiesMissing, w.clustersMissing} {
		found, err := check(ctx)
		if err != nil {
			found = append(found, err.Error())
		}
		missing = append(missing, found...)
	}
	w.player.mu.Lock()
	for _, b := range w.books {
		for _, open := range b.Open() {
			missing = append(missing, fmt.Sprintf("the log of %s has %s open", b.Side, open))
		}
	}
	w.player.mu.Unlock()
	slices.Sort(missing)
	return missing
}

func (w *watcher) daemonsMissing(ctx context.Context) ([]string, error) {
	var missing []string
	for _, one := range w.sides {
		if !one.keeper.ready(ctx) {
			missing = append(missing, "scuted of "+one.Side.Name()+" is not ready")
		}
	}
	return missing, nil
}

func (w *watcher) movesMissing(ctx context.Context) ([]string, error) {
	var missing []string
	ended := map[string]int{}
	for _, one := range w.sides {
		list := &v1alpha1.MoveList{}
		if err := one.admin.List(ctx, list, client.InNamespace(roam)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			m := &list.Items[i]
			ended[string(m.Status.Phase)]++
			if !scuted.Over(m) {
				missing = append(missing, fmt.Sprintf("Move %s is %s: %s, %v %s", m.Name, m.Status.Phase, m.Status.Message, m.Status.WaitingFor, m.Status.Next))
			}
		}
	}
	w.player.mu.Lock()
	w.moves = ended
	w.player.mu.Unlock()
	return missing, nil
}

// runsMissing checks the end of each run, and its ConfigMaps.
func (w *watcher) runsMissing(ctx context.Context) ([]string, error) {
	w.player.mu.Lock()
	runs := slices.Clone(w.runs)
	w.player.mu.Unlock()
	there := map[*side]map[string]bool{}
	for _, one := range w.sides {
		list := &corev1.ConfigMapList{}
		if err := one.admin.List(ctx, list, client.InNamespace(runsNamespace)); err != nil {
			return nil, err
		}
		there[one] = map[string]bool{}
		for i := range list.Items {
			there[one][list.Items[i].Name] = true
		}
	}
	var missing []string
	for _, r := range runs {
		now := &v1alpha1.WorkflowRun{}
		if err := r.on.admin.Get(ctx, client.ObjectKey{Namespace: runsNamespace, Name: r.name}, now); err != nil {
			return missing, err
		}
		if now.Status.Phase != r.want {
			missing = append(missing, fmt.Sprintf("WorkflowRun %s is %s, and must be %s: %s", r.name, now.Status.Phase, r.want, now.Status.Message))
			continue
		}
		for _, name := range r.maps {
			if !there[r.on][name] {
				missing = append(missing, fmt.Sprintf("ConfigMap %s of %s is not there", name, r.name))
			}
		}
		for _, name := range r.none {
			if there[r.on][name] {
				missing = append(missing, fmt.Sprintf("ConfigMap %s of %s was not undone", name, r.name))
			}
		}
	}
	return missing, nil
}

func (w *watcher) policiesMissing(ctx context.Context) ([]string, error) {
	var missing []string
	for _, one := range w.sides {
		list := &v1alpha1.RepairPolicyList{}
		if err := one.admin.List(ctx, list); err != nil {
			return nil, err
		}
		for i := range list.Items {
			p := &list.Items[i]
			if len(p.Spec.PauseRequests) > 0 || p.Status.Active > 0 || p.Status.Unhealthy > 0 || p.Status.ObservedGeneration != p.Generation {
				missing = append(missing, fmt.Sprintf("policy %s of %s: pause requests %v, %d active, %d unhealthy: %s",
					p.Namespace, one.Side.Name(), p.Spec.PauseRequests, p.Status.Active, p.Status.Unhealthy, p.Status.Message))
			}
		}
	}
	return missing, nil
}

// clustersMissing checks that each cluster is complete on exactly one side and that nothing remains of moves and
// remediations.
func (w *watcher) clustersMissing(ctx context.Context) ([]string, error) {
	var missing []string
	for _, spec := range clusters() {
		name := spec.Namespace + "/" + spec.Name
		var at []*side
		for _, one := range w.sides {
			err := one.admin.Get(ctx, split(name), &clusterv1.Cluster{})
			if client.IgnoreNotFound(err) != nil {
				return missing, err
			}
			if !apierrors.IsNotFound(err) {
				at = append(at, one)
			}
		}
		if len(at) != 1 {
			missing = append(missing, fmt.Sprintf("%s is on %d sides", name, len(at)))
			continue
		}
		found, err := w.clusterMissing(ctx, at[0], name)
		if err != nil {
			return missing, fmt.Errorf("%s: %w", name, err)
		}
		for _, text := range found {
			missing = append(missing, name+": "+text)
		}
	}
	for _, one := range w.sides {
		for _, namespace := range []string{fleet, roam} {
			inv, err := inventory.Take(ctx, one.Side, namespace)
			if err != nil {
				return missing, err
			}
			for _, text := range inv.Touched {
				missing = append(missing, fmt.Sprintf("left on %s: %s", one.Side.Name(), text))
			}
		}
	}
	return missing, nil
}

func (w *watcher) clusterMissing(ctx context.Context, on *side, cluster string) ([]string, error) {
	key := split(cluster)
	missing, err := on.Side.Missing(ctx, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	left, err := inventory.LeftOfRemediations(ctx, on.admin, key.Namespace, key.Name)
	if err != nil {
		return nil, err
	}
	missing = append(missing, left...)
	var names []string
	for of, want := range map[bool]int{true: controlPlanes, false: workers} {
		machines, err := machinesOf(ctx, on, cluster, of)
		if err != nil {
			return nil, err
		}
		if len(machines) != want {
			missing = append(missing, fmt.Sprintf("%d machines (control plane: %t), %d wanted", len(machines), of, want))
		}
		for i := range machines {
			names = append(names, machines[i].Spec.InfrastructureRef.Name)
		}
	}
	slices.Sort(names)
	there, err := w.bed.Cloud().Machines(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if !slices.Equal(names, there) {
		missing = append(missing, fmt.Sprintf("machines %v, and in the cloud %v", names, there))
	}
	members, err := w.bed.Cloud().Etcd(ctx, cluster)
	if err != nil {
		return nil, err
	}
	answering := 0
	for _, m := range members {
		if m.Answers {
			answering++
		}
	}
	if len(members) != controlPlanes || answering != controlPlanes {
		missing = append(missing, fmt.Sprintf("%d of %d members of etcd answer", answering, len(members)))
	}
	return missing, nil
}

// lasts breaks one machine of each cluster permanently after everything has settled. It must be replaced, whatever
// happened before.
func (w *watcher) lasts(ctx context.Context) error {
	for i, place := range append(slices.Clone(places().Clusters), places().Roamer) {
		f := soak.Fault{Kind: soak.NodeNotReady, Where: place, Pick: uint32(i)} //nolint:gosec // a small number
		targets, err := w.choose(ctx, f, true, 1)
		if err != nil {
			return fmt.Errorf("breaking a last machine of %s: %w", place, err)
		}
		_, what, err := w.do(ctx, targets, func(ctx context.Context, t *target) error { return t.BreakNode(ctx, t.node(), corev1.ConditionFalse) }, nil)
		if err != nil {
			return fmt.Errorf("breaking a last machine of %s: %w", place, err)
		}
		w.report.say("last", "%s on %s: %s, for good", f.Kind, place, what)
	}
	return nil
}
