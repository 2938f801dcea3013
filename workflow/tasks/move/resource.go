package move

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"scute.dev/api/v1alpha1"
	"scute.dev/internal/sleep"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// maxMoveName limits the name of a Move resource and leaves space for the suffixes.
const maxMoveName = 200

func resourceBase(c *task.Call) string {
	name := strings.ToLower(c.Name + "-" + c.Task)
	return strings.Trim(name[:min(len(name), maxMoveName)], "-.") + "-" + task.Hash(c.Key())[:8]
}

func (m *Kind) runResource(ctx context.Context, c *task.Call, record moveRecord, w With) (json.RawMessage, error) {
	own, err := m.Clusters.Open(ctx, c, access.ClusterRef{})
	if err != nil {
		return nil, err
	}
	move, _, err := currentMove(ctx, own, c, record)
	if err != nil {
		return nil, resourceError(err)
	}
	if move.UID == "" {
		if err := createMove(ctx, own, c, move.Name, w); err != nil {
			return nil, resourceError(err)
		}
	}
	if move, err = waitForMove(ctx, own, c, move.Name); err != nil {
		return nil, err
	}
	if move.Status.Phase != mover.PhaseSucceeded {
		return nil, fmt.Errorf("Move %s: %s", move.Name, joinMessage(move.Status.Message, move.Status.Next)) //nolint:staticcheck // Move is the name of a kind
	}
	return json.Marshal(output{Move: move.Name, Clusters: move.Status.Counts.Clusters, Objects: move.Status.Counts.Objects, Message: move.Status.Message})
}

func (m *Kind) undoResource(ctx context.Context, c *task.Call, record moveRecord) error {
	own, err := m.Clusters.Open(ctx, c, access.ClusterRef{})
	if err != nil {
		return err
	}
	move, _, err := currentMove(ctx, own, c, record)
	if err != nil {
		return resourceError(err)
	}
	if move.UID == "" {
		var out output
		if json.Unmarshal(c.Output, &out) == nil && out.Move != "" {
			return task.Final(ErrMoved) // the Move of the task was deleted
		}
		return nil // there is no Move, or all Moves were rolled back
	}
	if move.Status.FinishedAt == nil && !move.Spec.Abort {
		ref := object.Ref{Namespace: c.Namespace, Name: move.Name}
		if err := own.Kube.Patch(ctx, "abort Move "+move.Name, moveType(), ref, map[string]any{"spec": map[string]any{"abort": true}}); err != nil {
			return resourceError(err)
		}
	}
	if move, err = waitForMove(ctx, own, c, move.Name); err != nil {
		return err
	}
	if move.Status.Phase == mover.PhaseSucceeded {
		return task.Final(ErrMoved)
	}
	return nil
}

// currentMove returns the first of the task's Moves that is unfinished or has succeeded, and its
// number. If there is none, it returns the next Move to create, which has no UID.
func currentMove(ctx context.Context, own *access.Cluster, c *task.Call, record moveRecord) (move *v1alpha1.Move, n int, err error) {
	for n = max(1, record.Number); ; n++ {
		move, err := getMove(ctx, own, c.Namespace, record.nth(n))
		switch {
		case apierrors.IsNotFound(err):
			return &v1alpha1.Move{ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: record.nth(n)}}, n, nil
		case err != nil:
			return nil, n, err
		case move.Annotations[access.StepKeyAnnotation] != c.Key():
			return nil, n, task.Final(fmt.Errorf("Move %s/%s exists and was not created by this run: delete it when it has ended", c.Namespace, move.Name)) //nolint:staticcheck // Move is the name of a kind
		case move.Status.FinishedAt == nil || move.Status.Phase == mover.PhaseSucceeded:
			return move, n, nil
		}
	}
}

func moveType() kube.Type {
	v := v1alpha1.GroupVersion()
	return kube.Type{Group: v.Group, Kind: "Move", Plural: "moves", Versions: []string{v.Version}, Namespaced: true}
}

func getMove(ctx context.Context, own *access.Cluster, namespace, name string) (*v1alpha1.Move, error) {
	u, err := own.Kube.Get(ctx, moveType(), namespace, name)
	if err != nil {
		return nil, err
	}
	var move v1alpha1.Move
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &move); err != nil {
		return nil, task.Final(fmt.Errorf("reading Move %s/%s: %w", namespace, name, err))
	}
	return &move, nil
}

func createMove(ctx context.Context, own *access.Cluster, c *task.Call, name string, w With) error {
	move := v1alpha1.Move{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion().String(), Kind: "Move"},
		ObjectMeta: metav1.ObjectMeta{Namespace: c.Namespace, Name: name, Annotations: map[string]string{access.StepKeyAnnotation: c.Key()}},
		Spec: v1alpha1.MoveSpec{
			Target: v1alpha1.MoveTarget{
				KubeconfigSecretRef: v1alpha1.SecretKeyRef{Name: w.To.KubeconfigSecretRef.Name, Key: w.To.KubeconfigSecretRef.Key}, AllowInsecure: w.To.AllowInsecure,
			},
			Selection:   v1alpha1.MoveSelection{Clusters: w.Clusters, All: w.All},
			CarryStatus: w.CarryStatus,
			AcceptLoss:  w.AcceptLoss,
			Timeouts: v1alpha1.MoveTimeouts{
				Acknowledge: &v1alpha1.Duration{Duration: time.Duration(cmp.Or(w.Timeouts.Acknowledge, acknowledgeTimeout))},
				Create:      &v1alpha1.Duration{Duration: time.Duration(cmp.Or(w.Timeouts.Create, createTimeout))},
				Resume:      &v1alpha1.Duration{Duration: time.Duration(cmp.Or(w.Timeouts.Resume, resumeTimeout))},
			},
		},
	}
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&move)
	if err != nil {
		return fmt.Errorf("encoding Move %s: %w", name, err)
	}
	unstructured.RemoveNestedField(content, "status")
	_, err = own.Kube.Create(ctx, moveType(), &unstructured.Unstructured{Object: content})
	if apierrors.IsAlreadyExists(err) {
		return nil // an earlier request, whose response was lost, created the Move
	}
	return err
}

func waitForMove(ctx context.Context, own *access.Cluster, c *task.Call, name string) (*v1alpha1.Move, error) {
	c.YieldSlot()
	pace := access.NewBackoff()
	for {
		move, err := getMove(ctx, own, c.Namespace, name)
		switch {
		case err == nil && move.Status.FinishedAt != nil:
			return move, nil
		case err == nil:
			c.Progress(joinMessage(cmp.Or(move.Status.Message, "waiting for a daemon to start Move "+name), move.Status.Next))
		case ctx.Err() == nil:
			return nil, resourceError(err)
		}
		if err := sleep.For(ctx, pace.NextBackOff()); err != nil {
			return nil, fmt.Errorf("Move %s continues; the next attempt waits for it again: %w", name, err) //nolint:staticcheck // Move is the name of a kind
		}
	}
}

// resourceError makes an error final if another attempt would fail in the same way.
func resourceError(err error) error {
	switch {
	case err == nil, task.IsFinal(err), errors.Is(err, context.Canceled):
		return err
	case apierrors.IsForbidden(err):
		return task.Final(fmt.Errorf("%w: grant get, create and patch on moves.scute.dev to the run's ServiceAccount", err))
	case apierrors.IsInvalid(err):
		return task.Final(err)
	}
	return err
}
