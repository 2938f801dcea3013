package act

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// ErrPreconditionFailed means that another client changed the object of an action after the decision. Nothing was written. The caller must observe
// again, not retry.
var ErrPreconditionFailed = errors.New("the state has changed since the decision")

// preconditionFailed returns an ErrPreconditionFailed with what was found.
func preconditionFailed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrPreconditionFailed, fmt.Sprintf(format, args...))
}

// performTimeout is the default timeout of one action with all its calls.
const performTimeout = time.Minute

// Executor performs actions on the management cluster.
type Executor struct {
	// Client accesses the management cluster. It must not cache, because an action depends on what it reads.
	Client client.Client
	// Etcd changes the etcd of workload clusters. If nil, actions on etcd fail.
	Etcd Etcd
}

// Perform performs one action on the owner of the facts. It uses only names and identities in the facts, and reads everything else again.
// ErrPreconditionFailed means that nothing was written because a precondition has changed.
func (e *Executor) Perform(ctx context.Context, f *remediator.Facts, a remediator.Action) error {
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(a.Timeout, performTimeout))
	defer cancel()
	d := &execution{Executor: e, Action: a, facts: f}
	if err := d.perform(ctx); err != nil {
		return fmt.Errorf("%s (machine %s/%s): %w", a.Type, f.Owner.Namespace, a.Machine.Name, err)
	}
	return nil
}

// execution is one action that is being performed.
type execution struct {
	*Executor
	remediator.Action
	facts *remediator.Facts
}

func (d *execution) perform(ctx context.Context) error {
	switch d.Type {
	case remediator.SetUnhealthy:
		return d.annotate(ctx, d.Value != "", v1alpha1.UnhealthyAnnotation)
	case remediator.SetNeeded:
		return d.annotate(ctx, false, object.NeededAnnotation)
	case remediator.SetDelete:
		return d.setDelete(ctx)
	case remediator.SetCertificates:
		return d.setCertificates(ctx)
	case remediator.SetClonedFrom:
		return d.setClonedFrom(ctx)
	case remediator.SetRelaxed:
		return d.setRelaxed(ctx)
	case remediator.Touch:
		return d.touch(ctx)
	case remediator.Scale:
		return d.scale(ctx)
	case remediator.HandOver:
		return d.handOver(ctx)
	case remediator.Report:
		return d.report(ctx)
	case remediator.Withdraw:
		return d.withdraw(ctx)
	case remediator.ClearConditions:
		return d.setHealthy(ctx)
	case remediator.MoveLeadership:
		return d.moveLeadership(ctx)
	case remediator.SkipDrain:
		return d.skip(ctx, clusterv1.ExcludeNodeDrainingAnnotation)
	case remediator.SkipDetach:
		return d.skip(ctx, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)
	case remediator.CreateStepObject:
		return d.createStepObject(ctx)
	case remediator.DeleteStepObject:
		return d.deleteStepObject(ctx)
	case remediator.CreateRequest:
		return d.createRequest(ctx)
	case remediator.DeleteRequest:
		return d.deleteRequest(ctx)
	case remediator.Defragment:
		return d.defragment(ctx)
	case remediator.Disarm:
		return d.disarm(ctx)
	default:
		return fmt.Errorf("this version does not know the action %q", d.Type)
	}
}
