package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	controlplanev1 "sigs.k8s.io/cluster-api/api/controlplane/kubeadm/v1beta2"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/soak"
)

// settled returns the side on which a cluster is active if no move of the cluster is in progress, as a user would check
// before a change of the cluster's spec.
func (p *player) settled(ctx context.Context, cluster string) (*side, error) {
	on, acts, err := p.home(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if !acts {
		return nil, withheld("%s is paused, or is being moved", cluster)
	}
	for _, one := range p.sides {
		list := &v1alpha1.MoveList{}
		if err := one.admin.List(ctx, list, client.InNamespace(split(cluster).Namespace)); err != nil {
			return nil, err
		}
		for i := range list.Items {
			if m := &list.Items[i]; m.Status.FinishedAt == nil {
				return nil, withheld("Move %s is not over: %s", m.Name, m.Status.Phase)
			}
		}
	}
	return on, nil
}

func merge(ctx context.Context, on *side, o client.Object, patch string) error {
	return on.admin.Patch(ctx, o, client.RawPatch(types.MergePatchType, []byte(patch)))
}

// controlPlane returns the object in which users change a control plane: the Cluster with its topology, or the control
// plane itself.
func controlPlane(ctx context.Context, on *side, cluster string) (o client.Object, at string, replicas int32, err error) {
	c := &clusterv1.Cluster{}
	if err := on.admin.Get(ctx, split(cluster), c); err != nil {
		return nil, "", 0, err
	}
	if c.Spec.Topology.IsDefined() {
		if c.Spec.Topology.ControlPlane.Replicas == nil {
			return nil, "", 0, fmt.Errorf("the topology of %s has no replicas", cluster)
		}
		return c, `{"spec":{"topology":{"controlPlane":%s}}}`, *c.Spec.Topology.ControlPlane.Replicas, nil
	}
	list := &controlplanev1.KubeadmControlPlaneList{}
	key := split(cluster)
	if err := on.admin.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}); err != nil {
		return nil, "", 0, err
	}
	if len(list.Items) != 1 {
		return nil, "", 0, fmt.Errorf("%d control planes in %s", len(list.Items), cluster)
	}
	return &list.Items[0], `{"spec":%s}`, *list.Items[0].Spec.Replicas, nil
}

// scaling is the pause request that scaled sets on a policy.
const scaling = "a human scales a control plane"

// scaled pauses the policy, waits until no remediation is in progress, and scales the control plane, as a user does.
// The undo does the same.
func (p *player) scaled(ctx context.Context, f soak.Fault) (undo, string, error) {
	to := func(ctx context.Context, replicas int32) error {
		on, err := p.settled(ctx, f.Where)
		if err != nil {
			return err
		}
		if err := p.quiet(ctx, on, f.Where); err != nil {
			return err
		}
		o, at, now, err := controlPlane(ctx, on, f.Where)
		if err != nil {
			return err
		}
		if now == replicas {
			return nil
		}
		p.mu.Lock()
		p.world.Scale(f.Where, int(now), int(replicas))
		p.mu.Unlock()
		return merge(ctx, on, o, fmt.Sprintf(at, fmt.Sprintf(`{"replicas":%d}`, replicas)))
	}
	back := func(ctx context.Context) error {
		if err := to(ctx, controlPlanes); err != nil {
			return errors.Join(err, p.resume(ctx, f.Where))
		}
		return p.resume(ctx, f.Where)
	}
	if err := to(ctx, controlPlanes+2); err != nil {
		return back, "", err
	}
	if err := p.resume(ctx, f.Where); err != nil {
		return back, "", err
	}
	return back, fmt.Sprintf("%d control plane machines asked for", controlPlanes+2), nil
}

// quiet pauses the policy and waits until no remediation is in progress.
func (p *player) quiet(ctx context.Context, on *side, cluster string) error {
	key := client.ObjectKey{Namespace: split(cluster).Namespace, Name: policyName}
	object := &v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	if err := merge(ctx, on, object, `{"spec":{"pauseRequests":["`+scaling+`"]}}`); err != nil {
		return err
	}
	for {
		err := on.admin.Get(ctx, key, object)
		if err == nil && object.Status.ObservedGeneration == object.Generation && object.Status.Active == 0 {
			return nil
		}
		select {
		case <-ctx.Done():
			return withheld("%d remediations are in progress", object.Status.Active)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// resume removes the pause request, on whatever side it is.
func (p *player) resume(ctx context.Context, cluster string) error {
	for _, one := range p.sides {
		object := &v1alpha1.RepairPolicy{}
		if err := one.admin.Get(ctx, client.ObjectKey{Namespace: split(cluster).Namespace, Name: policyName}, object); err != nil {
			return err
		}
		if !slices.Contains(object.Spec.PauseRequests, scaling) {
			continue
		}
		if err := merge(ctx, one, object, `{"spec":{"pauseRequests":null}}`); err != nil {
			return err
		}
	}
	return nil
}

// rolledOut replaces all control plane machines, or upgrades them, and the topology's workers too.
func (p *player) rolledOut(ctx context.Context, f soak.Fault) (undo, string, error) {
	on, err := p.settled(ctx, f.Where)
	if err != nil {
		return nil, "", err
	}
	o, at, _, err := controlPlane(ctx, on, f.Where)
	if err != nil {
		return nil, "", err
	}
	if f.Pick%2 == 0 {
		now := time.Now().UTC().Truncate(time.Second)
		p.mu.Lock()
		p.world.Roll(f.Where, now, "")
		p.mu.Unlock()
		return nil, "rollout.after " + now.Format(time.RFC3339), merge(ctx, on, o, fmt.Sprintf(at, `{"rollout":{"after":"`+now.Format(time.RFC3339)+`"}}`))
	}
	version := ""
	switch x := o.(type) {
	case *clusterv1.Cluster:
		version, at = next(x.Spec.Topology.Version), `{"spec":{"topology":%s}}`
	case *controlplanev1.KubeadmControlPlane:
		version = next(x.Spec.Version)
	}
	p.mu.Lock()
	p.world.Roll(f.Where, time.Now(), version)
	p.mu.Unlock()
	return nil, "version " + version, merge(ctx, on, o, fmt.Sprintf(at, `{"version":"`+version+`"}`))
}

// next returns the next patch version.
func next(version string) string {
	dot := strings.LastIndexByte(version, '.')
	n, err := strconv.Atoi(version[dot+1:])
	if err != nil {
		return version
	}
	return version[:dot+1] + strconv.Itoa(n+1)
}

// paused pauses the Cluster, as a user does.
func (p *player) paused(ctx context.Context, f soak.Fault) (undo, string, error) {
	on, err := p.settled(ctx, f.Where)
	if err != nil {
		return nil, "", err
	}
	pause := func(ctx context.Context, paused bool) error {
		key := split(f.Where)
		c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
		return merge(ctx, on, c, fmt.Sprintf(`{"spec":{"paused":%t}}`, paused))
	}
	return func(ctx context.Context) error { return pause(ctx, false) }, "Cluster " + f.Where, pause(ctx, true)
}

// order is a request of a user to the remediation of a machine, with the patch that reverts it.
type order struct {
	of    client.ObjectKey
	unsay string
}

// takeBack reverts the requests to remediations that had ended before their time. An abort and a hold belong to the
// machine, and are copied to the request of its next remediation.
func (p *player) takeBack(ctx context.Context) error {
	p.mu.Lock()
	orders := slices.Clone(p.orders)
	p.mu.Unlock()
	for _, o := range orders {
		for _, one := range p.sides {
			request := &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: o.of.Namespace, Name: o.of.Name}}
			if err := client.IgnoreNotFound(merge(ctx, one, request, o.unsay)); err != nil {
				return err
			}
		}
	}
	return nil
}

// remediation waits for a remediation of a cluster, and patches its request.
func (p *player) remediation(ctx context.Context, f soak.Fault, say, unsay string) (undo, string, error) {
	ctx, cancel := context.WithTimeout(ctx, f.For)
	defer cancel()
	var found *v1alpha1.SurgeRemediation
	var on *side
	for found == nil {
		var err error
		if on, _, err = p.home(ctx, f.Where); err != nil {
			return nil, "", err
		}
		key := split(f.Where)
		list := &v1alpha1.SurgeRemediationList{}
		if err := on.admin.List(ctx, list, client.InNamespace(key.Namespace), client.MatchingLabels{clusterv1.ClusterNameLabel: key.Name}); err != nil {
			return nil, "", err
		}
		if len(list.Items) > 0 {
			found = &list.Items[int(f.Pick)%len(list.Items)]
			break
		}
		select {
		case <-ctx.Done():
			return nil, "", withheld("no remediation in %s", f.For)
		case <-time.After(100 * time.Millisecond):
		}
	}
	u := func(ctx context.Context) error {
		err := merge(ctx, on, &v1alpha1.SurgeRemediation{ObjectMeta: metav1.ObjectMeta{Namespace: found.Namespace, Name: found.Name}}, unsay)
		if apierrors.IsNotFound(err) {
			p.mu.Lock()
			p.orders = append(p.orders, order{client.ObjectKeyFromObject(found), unsay})
			p.mu.Unlock()
			return nil
		}
		return err
	}
	if err := merge(ctx, on, found.DeepCopy(), say); err != nil {
		if apierrors.IsNotFound(err) {
			return nil, "", withheld("the remediation of %s is over", found.Name)
		}
		return u, "", err
	}
	return u, fmt.Sprintf("%s, which was %s", found.Name, found.Status.Phase), nil
}

func (p *player) heldRemediation(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.remediation(ctx, f, `{"spec":{"hold":{"reason":"a human looks at it"}}}`, `{"spec":{"hold":null}}`)
}

func (p *player) abortedRemediation(ctx context.Context, f soak.Fault) (undo, string, error) {
	return p.remediation(ctx, f, `{"spec":{"abort":true}}`, `{"spec":{"abort":null}}`)
}
