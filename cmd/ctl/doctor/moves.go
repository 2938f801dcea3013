package doctor

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/internal/trust"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/mover/transfer"
	"scute.dev/pause/hold"
)

// startTimeout is how long a new resource may wait for the daemon.
const startTimeout = time.Minute

// listMoves reads all Moves, or the Moves of the namespace if the user may not list all.
func listMoves(ctx context.Context, v *diagnosis) bool {
	list := &v1alpha1.MoveList{}
	everywhere, err := v.list(ctx, list)
	switch {
	case apierrors.IsForbidden(err):
		v.report(problem("moves", "ask for the ClusterRole scute-viewer, or scute-operator to create moves too", "listing moves: %v", v.cluster.Explain(err)))
		return false
	case err != nil:
		v.report(problem("moves", "check the error of the API server: kubectl get moves -A", "listing moves: %v", v.cluster.Explain(err)))
		return false
	case !everywhere:
		v.report(warning("moves", "ask for permission to list moves of all namespaces", "only moves of namespace %s could be checked", v.cluster.Namespace))
	}
	v.all, v.hasMoves = list.Items, true
	return true
}

// waitingMoves reports moves that wait for an operator.
func waitingMoves(v *diagnosis) {
	const subject = "moves"
	busy := 0
	reportEach(v, v.all, func(m *v1alpha1.Move) *Result {
		if m.Status.FinishedAt != nil {
			return nil
		}
		busy++
		name, look := m.Namespace+"/"+m.Name, v.kit.Hint(m.Namespace, "describe", "move", m.Name)
		untrusted := trust.FaultIn(m.Status.Conditions)
		if untrusted != nil {
			return new(problem(subject, reconcileRemedy(v, untrusted), "%s is stalled in %s: %s", name, m.Status.Phase, untrusted.Message))
		}
		if m.Status.Next != "" {
			return new(problem(subject, m.Status.Next, "%s is stalled in %s: %s", name, m.Status.Phase, m.Status.Message))
		}
		if m.Status.Phase == "" || m.Status.Phase == mover.PhasePending {
			if r := v.unheard(subject, m); r != nil {
				return r
			}
		}
		if v.noDaemon {
			return new(warning(subject, "check scuted above; "+look, "%s is in %s and no process drives it", name, m.Status.Phase))
		}
		return nil
	}, func() Result {
		return ok(subject, "%d in progress, %d in total; none waits for an operator", busy, len(v.all))
	})
}

// unfinishedRestores reports unfinished restores. Their target may be a cluster without scute.
func unfinishedRestores(ctx context.Context, v *diagnosis) bool {
	const subject = "restores"
	unfinished, err := transfer.UnfinishedRestores(ctx, v.kube)
	for _, r := range unfinished {
		for _, name := range r.Clusters {
			v.report(problem(subject, "run the same restore command again: it continues. Do not unpause the cluster, and do not remove annotations",
				"the restore of %s/%s from backup %s has not finished", r.Namespace, name, r.Backup))
		}
	}
	if err != nil {
		v.report(warning(subject, "ask for permission to list configmaps of all namespaces", "%v", err))
	}
	return true
}

// movedAway returns the Move that moved a Cluster away before a Cluster of this name was created again; nil if there is none. The status of a move of
// all Clusters names only the first thousand.
func movedAway(v *diagnosis, u *unstructured.Unstructured) *v1alpha1.Move {
	byMover := slices.ContainsFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == kube.FieldManager })
	i := slices.IndexFunc(v.all, func(m v1alpha1.Move) bool {
		return !byMover && !m.Spec.DryRun && m.Status.Phase == mover.PhaseSucceeded && m.Status.StartedAt != nil && m.Namespace == u.GetNamespace() &&
			(slices.Contains(m.Spec.Selection.Clusters, u.GetName()) || slices.Contains(m.Status.Clusters, u.GetName())) && u.GetCreationTimestamp().After(m.Status.StartedAt.Time)
	})
	if i < 0 {
		return nil
	}
	return &v.all[i]
}

// leftoverPauses reports clusters that are paused or annotated although no move works on them.
func leftoverPauses(ctx context.Context, v *diagnosis) {
	const subject = "clusters"
	i := slices.IndexFunc(v.types, func(t kube.Type) bool { return t.Group == object.CoreGroup && t.Kind == "Cluster" })
	if i < 0 {
		return
	}
	working := make(map[string]bool)
	for i := range v.all {
		if m := &v.all[i]; m.Status.FinishedAt == nil && m.Status.MoveID != "" {
			working[m.Status.MoveID] = true
		}
	}
	seen, clean := 0, true
	err := v.kube.List(ctx, v.types[i], "", func(u *unstructured.Unstructured) error {
		seen++
		o := object.Observe(u)
		name := o.Ref.Namespace + "/" + o.Ref.Name
		paused := o.PausedByUser || o.Cluster != nil && o.Cluster.Paused
		held, orphan := pausedByRun(v, subject, name, u)
		byPause, lost := pausedByPause(v, name, o)
		held, clean = held || byPause, clean && !orphan && !lost
		_, restoring := hold.RestoredBackup(o.MoveID)
		if m := movedAway(v, u); m != nil {
			clean = false
			v.report(problem(subject, "check the target. If the cluster is in use there, pause this copy at once, stop what creates it (a GitOps tool?), and read docs/stranded.md before you delete it; "+
				"if it was moved back, delete the Move", "%s was moved away by move %s/%s and created here again %s: controllers of both management clusters may act on the same machines",
				name, m.Namespace, m.Name, cli.Ago(v.now(), u.GetCreationTimestamp().Time)))
		}
		switch {
		case restoring:
			clean = false // reported by unrestored
		case o.MoveID != "" && !working[o.MoveID]:
			clean = false
			v.report(problem(subject, "find out in the log how that move ended ("+v.kit.Hint("", "log", "tail", "--aggregate", "move/"+o.MoveID)+
				"); if this copy of the cluster is the one in use, remove annotation "+object.MoveAnnotation+" and unpause it",
				"%s has the annotation of move %s, which is not in progress", name, o.MoveID))
		case o.MoveID == "" && paused && !held:
			clean = false
			v.report(warning(subject, "unpause it if nobody needs the pause; a move would keep it paused on the target", "%s is paused, and not by scute", name))
		}
		return nil
	})
	switch {
	case err != nil:
		v.report(warning(subject, "ask for permission to list clusters", "%v", err))
	case clean:
		v.report(ok(subject, "%d, none left paused or annotated", seen))
	}
}
