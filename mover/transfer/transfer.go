package transfer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/archive"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// Emit receives an outcome of a step that is still running. If it returns an error, the step must
// stop.
type Emit func(mover.Outcome) error

// Transfer performs the steps of one move. It is used by one goroutine at a time.
type Transfer struct {
	// ID is the ID of the move. Together with the ID of the log, it is in the annotations of the
	// objects that the move creates and pauses.
	ID string
	// Source is the management cluster that the objects are moved from. It contains the Move.
	Source *kube.Cluster
	// Dial connects to the target. It is called again after a failure, because the kubeconfig may
	// have been corrected.
	Dial func(ctx context.Context, spec mover.Spec) (*kube.Cluster, error)
	// Remediations lists the unfinished remediations of the source's machines from the event log;
	// nil if that log cannot be read.
	Remediations func(ctx context.Context) ([]Remediation, error)
	// Shares reports whether a move of a namespace may copy objects of other namespaces: Secrets of
	// cluster-scoped identities, ClusterClasses and their templates. It is nil for a process that
	// only has its user's permissions.
	Shares func(namespace string) bool
	// Workers limits the concurrent requests to each of the two clusters. The default is 32.
	Workers int

	command     bool             // a backup or a restore, without a Move
	archive     *archive.Archive // what a restore reads instead of the source
	log         string           // the log ID in the move's annotations
	target      *kube.Cluster
	targetID    string
	sourceTypes map[string]kube.Type // the source's movable kinds by Kind.group
	targetTypes map[string]kube.Type // the target's
	listable    []kube.Type          // the source's namespaced kinds
	unserved    []string             // labelled definitions of the source that are not served
	sizes       sizes

	// pauseLifted means that the pause was removed while the source was emptied, and has not been
	// acknowledged again by all objects.
	pauseLifted atomic.Bool

	watch   pause.Watch
	touches hold.Touches
	// allAcked means that the last listing had no pending acknowledgement.
	allAcked bool
	// pausedSnapshot is a snapshot in which all objects have acknowledged the pause. It is kept
	// until the plan is drafted.
	pausedSnapshot *snapshot
	// verified means that this process has read all copies with the move's annotations, and has not
	// removed these annotations yet.
	verified bool
	// listedAt is when this process last listed every kind of the source to find objects outside of
	// the plan.
	listedAt time.Time
	// listInterval is the time between such listings. A listing counts as current for a tenth of
	// it. The default is 10 seconds.
	listInterval          time.Duration
	ackPolls, resumePolls polls
	// acknowledged contains the copies whose pause the target's controllers have acknowledged.
	acknowledged map[object.Ref]bool
}

// FinalError is a failure that a retry cannot resolve. Next is what the user can do about it.
type FinalError struct {
	Err  error
	Next string
}

func (e *FinalError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *FinalError) Unwrap() error { return e.Err }

func finalError(next, format string, args ...any) error {
	return &FinalError{Err: fmt.Errorf(format, args...), Next: next}
}

// waitError is a failure of a step that changed nothing and waits for another client. A retry may
// succeed after that client has acted.
type waitError struct {
	message, next string
	stranded      bool
}

func (e *waitError) Error() string { return e.message }

// Reach connects to the target if a step needs it. Preflight reports a failed connection itself.
func (t *Transfer) Reach(ctx context.Context, s *mover.State, step mover.Step) (*mover.StepFailed, error) {
	if step == mover.RunPreflight {
		return nil, nil
	}
	err := t.connect(ctx, s.Spec, s.TargetID, needsTarget(step))
	switch {
	case err == nil:
		return nil, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	failed := t.failure(step, err)
	return &failed, nil
}

// Perform performs one step and returns its last outcome. A failure is an outcome. It returns an
// error only if ctx ends or emit fails.
func (t *Transfer) Perform(ctx context.Context, s *mover.State, step mover.Step, emit Emit) (mover.Outcome, error) {
	var stopped error
	t.log = s.MarkLog
	outcome, err := t.perform(ctx, s, step, func(o mover.Outcome) error {
		stopped = emit(o)
		return stopped
	})
	switch {
	case err == nil:
		return outcome, nil
	case stopped != nil:
		return nil, stopped
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return t.failure(step, err), nil
}

// failure converts the error of a step to an outcome. Unless the error is a waitError, it makes the
// next step read the kinds and dial the target again, because new credentials, another address or a
// new provider may resolve the failure.
func (t *Transfer) failure(step mover.Step, err error) mover.StepFailed {
	var waits *waitError
	if !errors.As(err, &waits) {
		t.sourceTypes, t.target = nil, nil
	}
	failed := mover.StepFailed{Message: err.Error(), Final: isFinal(err)}
	var f *FinalError
	switch {
	case waits != nil:
		failed.Next, failed.Stranded = waits.next, waits.stranded
	case errors.As(err, &f):
		failed.Next = f.Next
	case errors.Is(err, guard.ErrDenied):
		failed.Next = allowAddress
	case apierrors.IsUnauthorized(err):
		// Credentials expire and are rotated, and a rollback would need the target too.
		failed.Final = step == mover.RunPreflight
		failed.Next = "renew the credentials in the Secret of spec.target.kubeconfigSecretRef"
	case kube.IsAuthorizationDenied(err):
		// An API server that has just started denies everything until it has read its roles.
		failed.Final = step == mover.RunPreflight
		failed.Next = "grant this permission to the identity that scute uses there"
	case apierrors.IsForbidden(err):
		failed.Next = "change the webhook, admission policy or quota that rejects the request, or follow its message"
	}
	return failed
}

const allowAddress = "ask the operator of scuted to add the address to --allow-addresses (allowAddresses in the chart), or use a public address"

func (t *Transfer) perform(ctx context.Context, s *mover.State, step mover.Step, emit Emit) (mover.Outcome, error) {
	if step == mover.RunPreflight {
		return t.preflight(ctx, s)
	}
	if err := t.connect(ctx, s.Spec, s.TargetID, needsTarget(step)); err != nil {
		return nil, err
	}
	switch step {
	case mover.RecordBaseline:
		return t.baseline(ctx, s)
	case mover.PauseSource:
		return mover.Paused{}, t.writer().Set(ctx, s.Roots, t.holder())
	case mover.AwaitAcks:
		return t.awaitAcks(ctx, s)
	case mover.DraftPlan:
		return t.draft(ctx, s)
	case mover.CreateCopies:
		return t.create(ctx, s, emit)
	case mover.VerifyCopies:
		return t.verify(ctx, s)
	case mover.DeleteSource:
		return t.deleteSource(ctx, s, emit)
	case mover.RestorePauses:
		return t.restorePauses(ctx, s)
	case mover.AwaitResume:
		return t.pollResume(ctx, s)
	case mover.ClearTarget:
		return t.clearTarget(ctx, s, emit)
	case mover.RestoreSource:
		return t.restoreSource(ctx, s)
	case mover.AssessProgress:
		return t.assessProgress(ctx, s)
	case mover.Rebuild:
		return t.rebuild(ctx, s)
	case mover.AbandonTarget:
		return t.abandonTarget(ctx, s)
	default:
		return nil, finalError("report this as a bug", "step %q is not known", step)
	}
}

func needsTarget(step mover.Step) bool {
	switch step {
	case mover.RecordBaseline, mover.PauseSource, mover.AwaitAcks, mover.DraftPlan, mover.RestoreSource, mover.AbandonTarget:
		return false
	default:
		return true
	}
}

// connect reads the kinds of the source and, if target is true, connects to the target. It returns
// an error if identity is not "" and differs from the UID of the target's namespace kube-system.
func (t *Transfer) connect(ctx context.Context, spec mover.Spec, identity string, target bool) (err error) {
	if t.sourceTypes == nil {
		if t.sourceTypes, t.unserved, err = movableTypes(ctx, t.Source); err != nil {
			return err
		}
	}
	if !target || t.target != nil {
		return nil
	}
	cluster, err := t.Dial(ctx, spec)
	if err != nil {
		return err
	}
	var kinds map[string]kube.Type
	var unserved error
	var asked sync.WaitGroup
	asked.Go(func() { kinds, _, unserved = movableTypes(ctx, cluster) })
	t.targetID, err = cluster.NamespaceUID(ctx, metav1.NamespaceSystem)
	asked.Wait()
	if err != nil {
		return err
	}
	if identity != "" && identity != t.targetID {
		return finalError("put the kubeconfig of the right cluster into the Secret again: the move continues by itself",
			"the kubeconfig points to another cluster (at %s) than the target of this move", cluster.Host)
	}
	if unserved != nil {
		return unserved
	}
	t.targetTypes = kinds
	t.target = cluster
	return nil
}

func movableTypes(ctx context.Context, c *kube.Cluster) (known map[string]kube.Type, unserved []string, err error) {
	list, unserved, err := c.MovableTypes(ctx)
	if err != nil {
		return nil, nil, err
	}
	types := make(map[string]kube.Type, len(list))
	for _, t := range list {
		types[t.GroupKind()] = t
	}
	return types, unserved, nil
}

func (t *Transfer) typeOf(side *kube.Cluster, ref object.Ref, version string) (kube.Type, error) {
	types := t.sourceTypes
	if side == t.target {
		types = t.targetTypes
	}
	found, ok := types[ref.GroupKind()]
	if !ok {
		return kube.Type{}, finalError("install the provider that serves this kind, in the same version as in the other cluster",
			"the %s does not serve %s", side.Name, ref.GroupKind())
	}
	return found.At(version), nil
}

// isFinal reports whether a retry cannot resolve an error. It returns false for a conflict or a
// name that is already in use, because the other object may be in deletion.
func isFinal(err error) bool {
	var f *FinalError
	switch {
	case errors.As(err, &f), errors.Is(err, guard.ErrDenied),
		errors.Is(err, hold.ErrHeld), errors.Is(err, hold.ErrReplaced), errors.Is(err, hold.ErrChanged):
		return true
	case kube.IsTransient(err), apierrors.IsConflict(err), apierrors.IsAlreadyExists(err):
		return false
	}
	return apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsUnauthorized(err) ||
		apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err) || apierrors.IsRequestEntityTooLargeError(err)
}

func (t *Transfer) holder() hold.Holder { return hold.MoveHolder(t.ID, t.log) }

// isOurs reports whether an object has this move's annotations. A move with the same ID in another
// log is another move.
func (t *Transfer) isOurs(u *unstructured.Unstructured) bool {
	return hold.FirstHolder(u) == t.holder()
}

// copyAnnotations returns the annotations of a copy: they identify the move and the original, and
// record whether the original was found paused (found), so that the log is not needed to read them.
func (t *Transfer) copyAnnotations(item mover.Item, found bool) map[string]string {
	marks := map[string]string{object.MoveAnnotation: t.ID}
	if t.log == "" { // a local run does not record the ID of its log
		return marks
	}
	marks[object.LogAnnotation] = t.log
	if item.KeepReason == "" {
		marks[object.OriginAnnotation] = string(item.UID)
	}
	if found {
		marks[object.FoundPausedAnnotation] = ""
	}
	return marks
}

func clearedAnnotations() map[string]any {
	return map[string]any{object.MoveAnnotation: nil, object.LogAnnotation: nil, object.OriginAnnotation: nil, object.FoundPausedAnnotation: nil}
}

func (t *Transfer) workers() int { return cmp.Or(max(t.Workers, 0), 32) }
