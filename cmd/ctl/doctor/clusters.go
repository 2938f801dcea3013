package doctor

import (
	"context"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause/hold"
)

// movedAway returns the Move that moved a Cluster away before one with the same name was created,
// or nil. The status of a move of all Clusters names only the first thousand.
func movedAway(v *diagnosis, u *unstructured.Unstructured) *v1alpha1.Move {
	byMover := slices.ContainsFunc(u.GetManagedFields(), func(f metav1.ManagedFieldsEntry) bool { return f.Manager == kube.FieldManager })
	i := slices.IndexFunc(v.moves.Items, func(m v1alpha1.Move) bool {
		return !byMover && !m.Spec.DryRun && m.Status.Phase == mover.PhaseSucceeded && m.Status.StartedAt != nil && m.Namespace == u.GetNamespace() &&
			(slices.Contains(m.Spec.Selection.Clusters, u.GetName()) || slices.Contains(m.Status.Clusters, u.GetName())) && u.GetCreationTimestamp().After(m.Status.StartedAt.Time)
	})
	if i < 0 {
		return nil
	}
	return &v.moves.Items[i]
}

// leftoverPauses reports clusters that are paused, or have annotations of a move, although no move
// works on them.
func leftoverPauses(ctx context.Context, v *diagnosis) {
	const subject = "clusters"
	i := slices.IndexFunc(v.types, isCluster)
	if i < 0 {
		return
	}
	working := make(map[string]bool)
	for i := range v.moves.Items {
		if m := &v.moves.Items[i]; m.Status.FinishedAt == nil && m.Status.MoveID != "" {
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
			clean = false // reported by unfinishedRestores
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

// pausedByRun reports whether a cluster has the pause annotation of a run (held), and whether that
// run is not in progress (orphan).
func pausedByRun(v *diagnosis, subject, name string, u *unstructured.Unstructured) (held, orphan bool) {
	holder := u.GetAnnotations()[object.PauseAnnotation]
	if holder == "" {
		return false, false
	}
	for i := range v.workflows.Items {
		s := &v.workflows.Items[i].Status
		if rest, of := strings.CutPrefix(holder, s.RunID); of && s.FinishedAt == nil && s.RunID != "" && (strings.HasPrefix(rest, "/") || strings.HasPrefix(rest, ".")) {
			return true, false
		}
	}
	v.report(problem(subject, "if that run is local, resume it there; otherwise, if its log shows that it has ended, remove annotation "+
		object.PauseAnnotation+" and unpause the cluster", "%s is paused by task %s, whose run is not in progress here", name, holder))
	return true, true
}

// pausedByPause reports whether a Pause holds a cluster (held), and whether that Pause no longer
// exists (orphan).
func pausedByPause(v *diagnosis, name string, o object.Observed) (held, orphan bool) {
	for mark, holder := range o.PauseHolders {
		uid, is := strings.CutPrefix(mark, object.PausePrefix)
		if !is {
			continue
		}
		held = true
		if v.listed["Pause"] && !slices.ContainsFunc(v.pauses.Items, func(p v1alpha1.Pause) bool { return string(p.UID) == uid }) {
			orphan = true
			v.report(problem("clusters", "scuted restores the cluster when it runs; if it does not, remove annotations "+mark+" and "+object.PausedBeforeAnnotation+", and unpause the cluster",
				"%s has the annotation of Pause %s, which does not exist", name, holder))
		}
	}
	return held, orphan
}
