package transfer

import (
	"context"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// strandedError returns an error about the differences between a cluster and the log in found, or
// nil if there are none. It sorts them so that the message is stable.
func strandedError(found []mover.ObjectReason, what, next string) error {
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b mover.ObjectReason) int { return object.Compare(a.Ref, b.Ref) })
	return &waitError{message: what + ": " + mover.Summary(found), next: next, stranded: true}
}

// keepLogAdvice returns what users should do if the clusters have changes of the move that the log
// does not contain.
func keepLogAdvice(s mover.Spec) string {
	return "do not unpause or delete anything by hand. If the event log was restored from a backup, restore the newer log; if there is none, run " +
		mover.ResolveCommand(s, mover.Forward) + ", which deletes the rest at the source and resumes the target if the target has every object"
}

type objects = map[object.Ref]*unstructured.Unstructured

// checkOriginals returns an error if a copy on the target has no complete original at the source,
// for example because the log was restored to a state before Verified. Such a copy must not be
// deleted.
func (t *Transfer) checkOriginals(s *mover.State, source, copies objects) error {
	var only []mover.ObjectReason
	for _, item := range s.Plan {
		if c := copies[item.Ref]; c == nil || !t.isOurs(c) {
			continue
		}
		if why := incompleteReason(item, source[item.Ref]); why != "" {
			only = append(only, mover.ObjectReason{Ref: item.Ref, Reason: why})
		}
	}
	return strandedError(only, "the rollback has stopped before it deleted anything, because these objects exist only on the target",
		keepLogAdvice(s.Spec)+". If the objects were deleted at the source on purpose, delete their copies on the target too; the rollback continues by "+
			"itself")
}

func incompleteReason(item mover.Item, have *unstructured.Unstructured) string {
	if have == nil {
		return "it no longer exists at the source"
	}
	if have.GetUID() != item.UID {
		return "the source has another object with the same name"
	}
	if isReleased(have) {
		return "a move has removed its finalizers at the source to delete it"
	}
	return ""
}

// isReleased reports whether a move has removed the finalizers to delete the object.
func isReleased(u *unstructured.Unstructured) bool {
	_, marked := u.GetAnnotations()[object.DeleteForMoveAnnotation]
	return marked
}

// checkCopies returns an error unless the target has, with the recorded UIDs, the copies of all
// objects that remain at the source or, if everything is true, the copies of all planned objects.
func checkCopies(s *mover.State, there heads, everything bool) error {
	var missing []mover.ObjectReason
	for _, item := range s.Plan {
		if !everything && !isRemaining(s, item) {
			continue
		}
		why := ""
		switch have := there[item.Ref]; {
		case have.uid == "":
			why = "it no longer exists on the target"
		case have.uid != s.Created[item.Ref]:
			why = "the target has another object with the same name"
		case have.deleting:
			why = "it is being deleted on the target"
		}
		if why != "" {
			missing = append(missing, mover.ObjectReason{Ref: item.Ref, Reason: why})
		}
	}
	return strandedError(missing, "deletion at the source has stopped, because the target no longer has the created objects",
		"find out what deleted them, and restore the target so that it has the same objects again, for example its etcd from a backup: the move "+
			"continues by itself. "+
			"If it cannot be restored, run "+mover.ResolveCommand(s.Spec, mover.Back)+", which resumes the source if nothing was deleted there yet. "+
			"Leave the source paused: it has the only copy of the objects that are not on the target")
}

// checkUnpause returns an error if a move has begun to delete the objects of a root, because the
// source must then stay paused. If the move has a plan, a missing root is an error too: the root
// was paused when the plan was made, so the move itself has deleted it.
func (t *Transfer) checkUnpause(ctx context.Context, s *mover.State) error {
	var emptied []mover.ObjectReason
	var mu sync.Mutex
	err := t.eachRoot(ctx, s.Roots, nil, func(_ context.Context, root pause.Root, _ kube.Type, u *unstructured.Unstructured) error {
		why := ""
		switch {
		case u == nil && len(s.Plan) > 0:
			why = "it no longer exists"
		case u == nil:
		case isEmptying(u):
			why = "its dependents are being deleted by move " + u.GetAnnotations()[object.EmptyingAnnotation]
		}
		if why != "" {
			mu.Lock()
			defer mu.Unlock()
			emptied = append(emptied, mover.ObjectReason{Ref: root.Ref, Reason: why})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return strandedError(emptied, "the source stays paused, because a move has started to delete its objects", keepLogAdvice(s.Spec))
}

// checkRecreated returns an error if another client, such as a GitOps tool, has created objects of
// the plan again at the source, and the source's controllers act on them because their Cluster is
// not paused. have contains the current objects of the source.
func (t *Transfer) checkRecreated(ctx context.Context, plan []mover.Item, have heads) error {
	var active []mover.ObjectReason
	clusters := make(map[object.Ref]*unstructured.Unstructured)
	for _, item := range plan {
		now := have[item.Ref].uid
		if item.KeepReason != "" || now == "" || now == item.UID || !isActive(item) {
			continue
		}
		ref := clusterOf(item)
		if _, known := clusters[ref]; !known {
			cluster, err := t.getSource(ctx, ref)
			if err != nil {
				return err
			}
			clusters[ref] = cluster
		}
		if cluster := clusters[ref]; cluster == nil || !pause.RootOf(object.Observe(cluster)).Found {
			active = append(active, mover.ObjectReason{Ref: item.Ref, Reason: recreatedReason(now, item.UID)})
		}
	}
	if len(active) == 0 {
		return nil
	}
	first := slices.MinFunc(active, func(a, b mover.ObjectReason) int { return object.Compare(a.Ref, b.Ref) }).Ref
	i := slices.IndexFunc(plan, func(item mover.Item) bool { return item.Ref == first })
	next, err := t.removalAdvice(ctx, first, clusters[clusterOf(plan[i])])
	if err != nil {
		return err
	}
	return strandedError(active, "the target stays paused, because the source again has objects of the move that are not paused", next)
}

// isActive reports whether the controller of an object may act on machines. It returns false for
// templates and other pure configuration.
func isActive(item mover.Item) bool {
	return item.Cluster != "" && strings.HasSuffix(item.Ref.Group, object.CoreGroup) && !isTemplate(item.Ref)
}

func clusterOf(item mover.Item) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: item.Ref.Namespace, Name: item.Cluster}
}

func recreatedReason(now, was types.UID) string {
	return "it has UID " + string(now) + ", but the moved object had UID " + string(was)
}

// getSource returns an object of the source, or nil if it does not exist.
func (t *Transfer) getSource(ctx context.Context, ref object.Ref) (*unstructured.Unstructured, error) {
	typ, err := t.kind(ref)
	if err != nil {
		return nil, err
	}
	return t.Source.Find(ctx, typ, ref)
}

// checkClassesUnused returns an error if a Cluster that is not in the plan uses a ClusterClass that
// is about to be deleted at the source. Cluster API's webhook would deny the deletion of the class,
// after its templates were deleted. have contains the current objects of the source.
func (t *Transfer) checkClassesUnused(ctx context.Context, s *mover.State, have heads) error {
	leaving := make(map[object.Ref]bool)
	planned := make(map[object.Ref]types.UID)
	for _, item := range s.Plan {
		switch {
		case pause.IsCluster(item.Ref):
			planned[item.Ref] = item.UID
		case isClass(item.Ref) && item.KeepReason == "" && have[item.Ref].uid == item.UID:
			leaving[item.Ref] = true
		}
	}
	if len(leaving) == 0 {
		return nil
	}
	var users []mover.ObjectReason
	again := make(objects)
	typ, err := t.kind(object.Ref{Group: object.CoreGroup, Kind: "Cluster"})
	if err != nil {
		return err
	}
	err = t.Source.List(ctx, typ, "", func(u *unstructured.Unstructured) error {
		ref, class := object.RefOf(u), classOf(u)
		was, known := planned[ref]
		if !leaving[class] || known && was == u.GetUID() {
			return nil
		}
		why := "it uses " + class.String()
		if known {
			again[ref], why = u, why+"; "+recreatedReason(u.GetUID(), was)
		}
		users = append(users, mover.ObjectReason{Ref: ref, Reason: why})
		return nil
	})
	if err != nil || len(users) == 0 {
		return err
	}
	next := "delete it, or set another ClusterClass in its spec.topology.classRef: the move continues by itself"
	if first := slices.MinFunc(users, func(a, b mover.ObjectReason) int { return object.Compare(a.Ref, b.Ref) }).Ref; again[first] != nil {
		if next, err = t.removalAdvice(ctx, first, again[first]); err != nil {
			return err
		}
	}
	return strandedError(users, "deletion at the source has stopped, because a Cluster outside the plan uses a ClusterClass that moves", next)
}

const classKind = "ClusterClass." + object.CoreGroup

func isClass(ref object.Ref) bool { return ref.GroupKind() == classKind }

// classOf returns the reference to a Cluster's ClusterClass. It has no name if the Cluster has no
// class.
func classOf(cluster *unstructured.Unstructured) object.Ref {
	facts := object.Observe(cluster).Cluster
	return object.Ref{Group: object.CoreGroup, Kind: "ClusterClass", Namespace: facts.ClassNamespace, Name: facts.ClassName}
}

// removalAdvice returns how users can delete an object that was recreated at the source, or its
// Cluster if that exists, without its controllers acting on it. It covers only one object, because
// the space of a status message is limited. The check is repeated for the next object.
func (t *Transfer) removalAdvice(ctx context.Context, ref object.Ref, cluster *unstructured.Unstructured) (string, error) {
	if cluster != nil {
		ref = object.RefOf(cluster)
	}
	typ, err := t.kind(ref)
	if err != nil {
		return "", err
	}
	it := strings.TrimSuffix(typ.Plural+"."+ref.Group, ".") + " " + ref.Name + " -n " + ref.Namespace
	hold := "`kubectl patch " + it + ` --type merge -p '{"spec":{"paused":true}}'` + "`"
	remove := "`kubectl delete " + it + " --wait=false`"
	release := "`kubectl patch " + it + ` --type merge -p '{"metadata":{"finalizers":null}}'` + "`"
	const suspend, goesOn = "suspend what creates it (a GitOps tool?); then, at the source, ", ". The move continues by itself"
	if cluster == nil { // no controller acts without a Cluster
		return suspend + "run " + remove + " and " + release + goesOn, nil
	}
	class, lacksClass := classOf(cluster), false
	if class.Name != "" {
		u, err := t.getSource(ctx, class)
		if err != nil {
			return "", err
		}
		lacksClass = u == nil
	}
	switch {
	case lacksClass && len(cluster.GetFinalizers()) == 0: // without its class, no controller can add one either
		return suspend + "run " + remove + goesOn, nil
	case lacksClass:
		return suspend + "create " + class.String() + " as it is on the target, because a Cluster cannot be changed without its class; run " +
			hold + ", " + remove + " and " + release + "; delete that class" + goesOn, nil
	default:
		return suspend + "run in this order " + hold + ", " + remove + " and " + release + goesOn, nil
	}
}
