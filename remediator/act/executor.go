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
	if err := performers[a.Type](&execution{Executor: e, Action: a, facts: f}, ctx); err != nil {
		return fmt.Errorf("%s (machine %s/%s): %w", a.Type, f.Owner.Namespace, a.Machine.Name, err)
	}
	return nil
}

type execution struct {
	*Executor
	remediator.Action
	facts *remediator.Facts
}

type performer func(*execution, context.Context) error

// performers has the performer of each type of action.
var performers = map[remediator.ActionType]performer{
	remediator.SetUnhealthy:     annotating(v1alpha1.UnhealthyAnnotation, true),
	remediator.SetNeeded:        annotating(object.NeededAnnotation, false),
	remediator.SetDelete:        (*execution).setDelete,
	remediator.SetCertificates:  (*execution).setCertificates,
	remediator.SetClonedFrom:    (*execution).setClonedFrom,
	remediator.SetRelaxed:       (*execution).setRelaxed,
	remediator.Touch:            (*execution).touch,
	remediator.Scale:            (*execution).scale,
	remediator.HandOver:         (*execution).handOver,
	remediator.Report:           (*execution).report,
	remediator.Withdraw:         (*execution).withdraw,
	remediator.ClearConditions:  (*execution).setHealthy,
	remediator.MoveLeadership:   onEtcd((*execution).moveLeadership),
	remediator.SkipDrain:        skipping(clusterv1.ExcludeNodeDrainingAnnotation),
	remediator.SkipDetach:       skipping(clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation),
	remediator.CreateStepObject: (*execution).createStepObject,
	remediator.DeleteStepObject: (*execution).deleteStepObject,
	remediator.CreateRequest:    (*execution).createRequest,
	remediator.DeleteRequest:    (*execution).deleteRequest,
	remediator.Defragment:       onEtcd((*execution).defragment),
	remediator.Disarm:           onEtcd((*execution).disarm),
}
