package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/conditions"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/cloud"
	"scute.dev/test/soak"
)

// watcher observes the stage continuously and checks the invariants.
type watcher struct {
	*player
	started time.Time
	mark    cloud.Mark

	wait sync.WaitGroup
	stop context.CancelFunc

	mu       sync.Mutex // of the following fields
	quorum   map[string]string
	known    map[string]soak.KnownMachine // machines, by name
	states   map[string]string
	pending  []soak.Removal
	stable   []string // objects of the roamer that are never replaced
	position map[string]time.Time
}

// watch starts to observe. end stops it.
func watch(p *player, stable []string) *watcher {
	ctx, stop := context.WithCancel(context.Background())
	w := &watcher{
		player: p, started: time.Now(), mark: p.bed.Cloud().Mark(), stop: stop, quorum: map[string]string{}, known: map[string]soak.KnownMachine{},
		states: map[string]string{}, stable: stable, position: map[string]time.Time{},
	}
	every := func(d time.Duration, look func(context.Context)) {
		w.wait.Go(func() {
			for ctx.Err() == nil {
				look(ctx)
				select {
				case <-ctx.Done():
				case <-time.After(d):
				}
			}
		})
	}
	for _, c := range clusters() {
		name := c.Namespace + "/" + c.Name
		every(100*time.Millisecond, func(ctx context.Context) { w.etcd(ctx, name) })
	}
	every(time.Second, w.machines)
	every(500*time.Millisecond, w.journal)
	every(150*time.Millisecond, w.presence)
	every(2*time.Second, w.somewhere)
	every(5*time.Second, w.usage)
	every(15*time.Second, w.progress)
	for _, one := range p.sides {
		w.wait.Go(func() { w.follow(ctx, one) })
	}
	return w
}

func (w *watcher) end() {
	w.stop()
	w.wait.Wait()
}

// etcd checks the members of a control plane, in the cloud itself, so that it works while a server is down.
func (w *watcher) etcd(ctx context.Context, cluster string) {
	look := func() (string, error) {
		list, err := w.bed.Cloud().Etcd(ctx, cluster)
		if err != nil {
			return "", nil // it was deleted with the cluster
		}
		members := make([]soak.Member, 0, len(list))
		w.player.mu.Lock()
		defer w.player.mu.Unlock()
		for _, m := range list {
			members = append(members, soak.Member{ID: m.ID, Answers: m.Answers})
			if !m.Answers {
				w.world.Lingers(m.Node, time.Now())
			}
		}
		voters, answering, err := w.world.Quorum(cluster, members)
		return fmt.Sprintf("%d of %d", answering, voters), err
	}
	text, err := look()
	if err != nil {
		text, err = look() // a member may change between the reads of the list and of the answers
	}
	w.mu.Lock()
	changed := w.quorum[cluster] != text
	w.quorum[cluster] = text
	w.mu.Unlock()
	if changed {
		w.report.note("etcd", "%s: %s members answer", cluster, text)
	}
	w.held("quorum", err)
}

// machines observes the Machines of all sides, for the report and for later removals.
func (w *watcher) machines(ctx context.Context) {
	for _, one := range w.sides {
		list := &clusterv1.MachineList{}
		if one.admin.List(ctx, list) != nil {
			continue // the server is down
		}
		w.seen(list.Items)
		w.mu.Lock()
		for i := range list.Items {
			m := &list.Items[i]
			_, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]
			if _, seen := w.known[m.Name]; !seen {
				w.known[m.Name] = soak.KnownMachine{ControlPlane: controlPlane, Created: m.CreationTimestamp.Time, Version: m.Spec.Version}
			}
			key := one.Side.Name() + " " + m.Namespace + "/" + m.Name
			if state := state(m); w.states[key] != state {
				w.states[key] = state
				w.report.note("machine", "%s: %s", key, state)
			}
		}
		w.mu.Unlock()
	}
}

// seen records the number of machines of each control plane, and which are seen as unhealthy.
func (w *watcher) seen(machines []clusterv1.Machine) {
	counts := map[string]int{}
	var crowd error
	w.player.mu.Lock()
	for i := range machines {
		m := &machines[i]
		if _, controlPlane := m.Labels[clusterv1.MachineControlPlaneLabel]; controlPlane {
			counts[m.Namespace+"/"+m.Spec.ClusterName]++
		}
		if !conditions.IsTrue(m, clusterv1.MachineNodeHealthyCondition) {
			w.world.Lingers(m.Name, time.Now())
		}
	}
	for cluster, n := range counts {
		w.world.Counted(cluster, n, time.Now())
		crowd = errors.Join(crowd, w.world.Crowd(cluster, n, controlPlanes))
	}
	w.player.mu.Unlock()
	w.held("crowd", crowd)
}

// state returns the state of a Machine in one line.
func state(m *clusterv1.Machine) string {
	text := m.Status.Phase
	for _, k := range []string{clusterv1.MachineNodeHealthyCondition, "EtcdPodHealthy", "EtcdMemberHealthy", "OwnerRemediated", "HealthCheckSucceeded", clusterv1.PausedCondition} {
		if c := conditions.Get(m, k); c != nil && (c.Status != metav1.ConditionTrue) == (k != clusterv1.PausedCondition) {
			text += fmt.Sprintf(", %s=%s", k, c.Status)
		}
	}
	for _, k := range []string{v1alpha1.UnhealthyAnnotation, clusterv1.DeleteMachineAnnotation, "cluster.x-k8s.io/remediate-machine"} {
		if v, there := m.Annotations[k]; there {
			text += ", " + k + "=" + v
		}
	}
	return text
}

// patience is how long a removal waits for its reason in the logs, if a side's log cannot be read.
const patience = 3 * time.Minute

// journal reads which machines were created and deleted in the cloud. It judges removals after the logs have been read
// up to them.
func (w *watcher) journal(context.Context) {
	mark := w.bed.Cloud().Mark()
	writes, err := w.bed.Cloud().Since(w.mark)
	if err != nil {
		w.violated(err)
		return
	}
	w.mark = mark
	for _, write := range writes.Replacements() {
		if write.Kind != cloud.MachineKind {
			continue
		}
		if write.Verb == cloud.Create {
			w.report.say("made", "machine %s of %s by %s", write.Name, write.Cluster, write.By)
			w.count(&w.made, 1)
			continue
		}
		w.mu.Lock()
		w.pending = append(w.pending, soak.Removal{Machine: write.Name, Cluster: write.Cluster, At: write.Time})
		w.mu.Unlock()
	}
	w.judge(time.Now())
}

// judge judges the removals up to which the logs have been read.
func (w *watcher) judge(now time.Time) {
	w.mu.Lock()
	var due []soak.Removal
	w.pending = slices.DeleteFunc(w.pending, func(r soak.Removal) bool {
		passed := now.Sub(r.At) > patience
		if !passed {
			passed = true
			for _, one := range w.sides {
				passed = passed && w.position[one.Side.Name()].After(r.At.Add(time.Second))
			}
		}
		if passed {
			due = append(due, r)
		}
		return passed
	})
	known := maps.Clone(w.known)
	w.mu.Unlock()
	for _, r := range due {
		var remedies []soak.Remedy
		w.player.mu.Lock()
		for _, b := range w.books {
			remedies = append(remedies, b.Remedies...)
		}
		why, err := w.world.Removed(r, known[r.Machine], remedies)
		if err == nil {
			w.removed[why]++
		}
		w.player.mu.Unlock()
		if err == nil {
			w.report.say("removed", "machine %s of %s: %s", r.Machine, r.Cluster, why)
		}
		w.held("removal", err)
	}
}

// presence checks that the roamer is not active on two sides.
func (w *watcher) presence(ctx context.Context) {
	look := func() ([]soak.Presence, error) {
		var all []soak.Presence
		for _, one := range w.sides {
			c := &clusterv1.Cluster{}
			err := one.admin.Get(ctx, split(places().Roamer), c)
			if err != nil && !apierrors.IsNotFound(err) {
				return nil, err
			}
			paused := c.Spec.Paused != nil && *c.Spec.Paused
			all = append(all, soak.Presence{Side: one.Side.Name(), Exists: err == nil, Paused: paused})
		}
		return all, nil
	}
	first, err := look()
	if err != nil {
		return // a server is down
	}
	second, err := look()
	if err != nil {
		return
	}
	text := ""
	for _, p := range second {
		text += fmt.Sprintf(" %s: exists %t, paused %t;", p.Side, p.Exists, p.Paused)
	}
	w.mu.Lock()
	changed := w.states["presence"] != text
	w.states["presence"] = text
	w.mu.Unlock()
	if changed {
		w.report.note("presence", "%s:%s", places().Roamer, text)
	}
	w.held("one active", soak.OneActive(places().Roamer, first, second))
}

// somewhere checks that each object of the roamer is on a side.
func (w *watcher) somewhere(ctx context.Context) {
	var looks []map[string]bool
	for range 3 {
		found := map[string]bool{}
		for _, one := range w.sides {
			objects, err := lasting(ctx, one, places().Roamer)
			if err != nil {
				return // a server is down
			}
			for _, name := range objects {
				found[name] = true
			}
		}
		if looks = append(looks, found); soak.Somewhere(places().Roamer, w.stable, looks...) == nil {
			break
		}
	}
	w.held("somewhere", soak.Somewhere(places().Roamer, w.stable, looks...))
}

// lasting returns the objects of a cluster that no rollout and no remediation replaces, as "Kind name".
func lasting(ctx context.Context, on *side, cluster string) ([]string, error) {
	key := split(cluster)
	var names []string
	for _, list := range []client.ObjectList{
		&clusterv1.ClusterList{}, &clusterv1.MachineDeploymentList{}, &clusterv1.ClusterClassList{},
	} {
		if err := on.admin.List(ctx, list, client.InNamespace(key.Namespace)); err != nil {
			return nil, err
		}
		switch l := list.(type) {
		case *clusterv1.ClusterList:
			for i := range l.Items {
				names = append(names, "Cluster "+l.Items[i].Name)
			}
		case *clusterv1.MachineDeploymentList:
			for i := range l.Items {
				names = append(names, "MachineDeployment "+l.Items[i].Name)
			}
		case *clusterv1.ClusterClassList:
			for i := range l.Items {
				names = append(names, "ClusterClass "+l.Items[i].Name)
			}
		}
	}
	secrets := &corev1.SecretList{}
	if err := on.admin.List(ctx, secrets, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}); err != nil {
		return nil, err
	}
	for i := range secrets.Items {
		switch name := secrets.Items[i].Name; name {
		case key.Name + "-ca", key.Name + "-etcd", key.Name + "-sa", key.Name + "-proxy", key.Name + "-kubeconfig":
			names = append(names, "Secret "+name)
		}
	}
	return names, nil
}

// progress prints the progress.
func (w *watcher) progress(context.Context) {
	w.mu.Lock()
	var quorum []string
	for _, name := range slices.Sorted(maps.Keys(w.quorum)) {
		quorum = append(quorum, name+" "+w.quorum[name])
	}
	w.mu.Unlock()
	w.player.mu.Lock()
	defer w.player.mu.Unlock()
	removed, looks, remedies := 0, 0, 0
	for _, n := range w.removed {
		removed += n
	}
	for _, n := range w.looks {
		looks += n
	}
	for _, b := range w.books {
		remedies += len(b.Remedies)
	}
	w.report.say("progress", "%d faults begun, %d on; machines: %d made, %d removed; %d remediations; members that answer: %v; %d looks",
		w.begun, w.on, w.made, removed, remedies, quorum, looks)
}
