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

// strand returns the error of a cluster that does not hold what the log says, if anything was found. It names the objects in a stable
// order, so that the same disagreement gives the same words.
func strand(found []mover.Wait, what, next string) error {
	if len(found) == 0 {
		return nil
	}
	slices.SortFunc(found, func(a, b mover.Wait) int { return object.Compare(a.Ref, b.Ref) })
	return &waitError{what: what + ": " + mover.Summary(found), next: next, stranded: true}
}

// keepLog is what to do where the clusters show that the move had gone further than the log knows.
func keepLog(s mover.Spec) string {
	return "do not unpause or delete anything by hand. If the event log was restored from a backup, bring the newer log back; if there is none, " +
		mover.Command(s, mover.Forward) + " empties the source and resumes the target, if the target has everything"
}

type objects = map[object.Ref]*unstructured.Unstructured

// originals makes sure that the source still holds, whole, what the given objects of the target are copies of. A copy
// whose original is gone, or was released to be deleted by a move, is the only one there is: the log may have gone back
// behind Verified.
func (t *Transfer) originals(s *mover.State, source, copies objects) error {
	var only []mover.Wait
	for _, item := range s.Plan {
		if c := copies[item.Ref]; c == nil || !t.isOurs(c) {
			continue
		}
		if why := notHeld(item, source[item.Ref]); why != "" {
			only = append(only, mover.Wait{Ref: item.Ref, Why: why})
		}
	}
	return strand(only, "the rollback stopped before it removed anything, because the target has the only copy of",
		keepLog(s.Spec)+". If somebody deleted the objects at the source on purpose, delete their copies on the target too; the rollback continues by itself")
}

// notHeld says why an object of the source is not the whole one of the plan; "" when it is.
func notHeld(item mover.Item, have *unstructured.Unstructured) string {
	if have == nil {
		return "it is gone at the source"
	}
	if have.GetUID() != item.UID {
		return "another object of its name is at the source"
	}
	if released(have) {
		return "it was released at the source to be deleted"
	}
	return ""
}

// released reports whether a move has removed the finalizers of an object to delete it.
func released(u *unstructured.Unstructured) bool {
	_, marked := u.GetAnnotations()[object.DeleteForMoveAnnotation]
	return marked
}

// held makes sure, before anything is deleted at the source, that the target still holds the copies of what is there, by their
// UIDs, or every object that was created or adopted there.
func held(s *mover.State, there heads, everything bool) error {
	var missing []mover.Wait
	for _, item := range s.Plan {
		if !everything && !remains(s, item) {
			continue
		}
		why := ""
		switch have := there[item.Ref]; {
		case have.uid == "":
			why = "it is gone on the target"
		case have.uid != s.Created[item.Ref]:
			why = "another object of its name is on the target"
		case have.deleting:
			why = "it is being deleted on the target"
		}
		if why != "" {
			missing = append(missing, mover.Wait{Ref: item.Ref, Why: why})
		}
	}
	return strand(missing, "nothing more is deleted at the source, because the target no longer holds what was created there",
		"find out what removed it and restore the target, its etcd from a backup for example, so that the same objects are there again: the move continues by itself. "+
			"If it cannot be restored, "+mover.Command(s.Spec, mover.Back)+" resumes the source, if nothing was deleted there yet. "+
			"Leave the source paused: it holds the only copy of what is not on the target")
}

// mayUnpause makes sure that no root is unpaused that a move has begun to empty. A move that got as far as a plan held its
// roots all along: one that is gone was deleted by the move itself, as a newer log would say.
func (t *Transfer) mayUnpause(ctx context.Context, s *mover.State) error {
	var emptied []mover.Wait
	var mu sync.Mutex
	err := t.eachRoot(ctx, s.Roots, func(_ context.Context, root pause.Root, _ kube.Type, u *unstructured.Unstructured) error {
		why := ""
		switch missing := u == nil || u.GetUID() != root.UID; {
		case missing && len(s.Plan) > 0:
			why = "it is gone"
		case missing:
		case isEmptying(u):
			why = "what belongs to it is being deleted by move " + u.GetAnnotations()[object.EmptyingAnnotation]
		}
		if why != "" {
			mu.Lock()
			defer mu.Unlock()
			emptied = append(emptied, mover.Wait{Ref: root.Ref, Why: why})
		}
		return nil
	})
	if err != nil {
		return err
	}
	return strand(emptied, "the source stays paused, because a move has begun to empty it", keepLog(s.Spec))
}

// recreated makes sure that no controller of the source works on what moves: somebody, a GitOps tool for example, may
// have made an object of the plan again. have is what the source has now.
func (t *Transfer) recreated(ctx context.Context, plan []mover.Item, have heads) error {
	var active []mover.Wait
	clusters := make(map[object.Ref]*unstructured.Unstructured)
	for _, item := range plan {
		now := have[item.Ref].uid
		if item.Keep != "" || now == "" || now == item.UID || !acts(item) {
			continue
		}
		ref := clusterOf(item)
		if _, known := clusters[ref]; !known {
			cluster, err := t.atSource(ctx, ref)
			if err != nil {
				return err
			}
			clusters[ref] = cluster
		}
		if cluster := clusters[ref]; cluster == nil || !pause.RootOf(object.Observe(cluster)).Found {
			active = append(active, mover.Wait{Ref: item.Ref, Why: madeAgain(now, item.UID)})
		}
	}
	if len(active) == 0 {
		return nil
	}
	first := slices.MinFunc(active, func(a, b mover.Wait) int { return object.Compare(a.Ref, b.Ref) }).Ref
	i := slices.IndexFunc(plan, func(item mover.Item) bool { return item.Ref == first })
	next, err := t.removal(ctx, first, clusters[clusterOf(plan[i])])
	if err != nil {
		return err
	}
	return strand(active, "the target stays paused, because the source has what moves again, not paused", next)
}

// acts: an object whose controller works on a cluster's machines. Configuration alone does nothing.
func acts(item mover.Item) bool {
	return item.Cluster != "" && strings.HasSuffix(item.Ref.Group, object.CoreGroup) && !isTemplate(item.Ref)
}

func clusterOf(item mover.Item) object.Ref {
	return object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: item.Ref.Namespace, Name: item.Cluster}
}

func madeAgain(now, was types.UID) string {
	return "it has UID " + string(now) + ", the one that moves had " + string(was)
}

// atSource reads an object of the source; nil if it is not there, though it may come any moment.
func (t *Transfer) atSource(ctx context.Context, ref object.Ref) (*unstructured.Unstructured, error) {
	typ, err := t.kind(ref)
	if err != nil {
		return nil, err
	}
	u, err := t.Source.Get(ctx, typ, ref.Namespace, ref.Name)
	if gone(err) {
		return nil, nil
	}
	return u, err
}

// classesUnused makes sure that no Cluster needs a ClusterClass that is about to be deleted at the source: one that was made
// again, or that came after the plan. The webhook of Cluster API would refuse the deletion, and the templates of the class would
// be gone by then. have is what the source has now.
func (t *Transfer) classesUnused(ctx context.Context, s *mover.State, have heads) error {
	leaving := make(map[object.Ref]bool)
	planned := make(map[object.Ref]types.UID)
	for _, item := range s.Plan {
		switch {
		case pause.IsCluster(item.Ref):
			planned[item.Ref] = item.UID
		case isClass(item.Ref) && item.Keep == "" && have[item.Ref].uid == item.UID:
			leaving[item.Ref] = true
		}
	}
	if len(leaving) == 0 {
		return nil
	}
	var users []mover.Wait
	again := make(objects)
	typ, err := t.kind(object.Ref{Group: object.CoreGroup, Kind: "Cluster"})
	if err != nil {
		return err
	}
	err = t.Source.List(ctx, typ, "", func(u *unstructured.Unstructured) error {
		ref, class := object.Observe(u).Ref, classOf(u)
		was, known := planned[ref]
		if !leaving[class] || known && was == u.GetUID() {
			return nil
		}
		why := "it uses " + class.String()
		if known {
			again[ref], why = u, why+"; "+madeAgain(u.GetUID(), was)
		}
		users = append(users, mover.Wait{Ref: ref, Why: why})
		return nil
	})
	if err != nil || len(users) == 0 {
		return err
	}
	next := "delete it, or have it use another ClusterClass (spec.topology.classRef): the move continues by itself"
	if first := slices.MinFunc(users, func(a, b mover.Wait) int { return object.Compare(a.Ref, b.Ref) }).Ref; again[first] != nil {
		if next, err = t.removal(ctx, first, again[first]); err != nil {
			return err
		}
	}
	return strand(users, "nothing more is deleted at the source, because a Cluster that the plan does not have uses a ClusterClass that moves", next)
}

const classKind = "ClusterClass." + object.CoreGroup

func isClass(ref object.Ref) bool { return ref.GroupKind() == classKind }

// classOf is the ClusterClass of a Cluster; one without a name where it has none.
func classOf(cluster *unstructured.Unstructured) object.Ref {
	facts := object.Observe(cluster).Cluster
	return object.Ref{Group: object.CoreGroup, Kind: "ClusterClass", Namespace: facts.ClassNamespace, Name: facts.ClassName}
}

// removal says how to take away what somebody made again at the source, so that its controllers never act: an object and its
// Cluster, if that is there. It gives the commands of one object: what a status says has a limit, and the move looks again.
func (t *Transfer) removal(ctx context.Context, ref object.Ref, cluster *unstructured.Unstructured) (string, error) {
	if cluster != nil {
		ref = object.Observe(cluster).Ref
	}
	typ, err := t.kind(ref)
	if err != nil {
		return "", err
	}
	it := strings.TrimSuffix(typ.Plural+"."+ref.Group, ".") + " " + ref.Name + " -n " + ref.Namespace
	hold := "`kubectl patch " + it + ` --type merge -p '{"spec":{"paused":true}}'` + "`"
	remove := "`kubectl delete " + it + " --wait=false`"
	release := "`kubectl patch " + it + ` --type merge -p '{"metadata":{"finalizers":null}}'` + "`"
	const suspend, goesOn = "suspend what makes it (a GitOps tool?); then, at the source, ", ". The move continues by itself"
	if cluster == nil { // no controller acts on what has no Cluster
		return suspend + "run " + remove + " and " + release + goesOn, nil
	}
	class, err := t.missingClass(ctx, cluster)
	switch {
	case err != nil:
		return "", err
	case class != "" && len(cluster.GetFinalizers()) == 0: // not even its controllers can give it one
		return suspend + "run " + remove + goesOn, nil
	case class != "":
		return suspend + "make " + class + " again as it is on the target, because a Cluster cannot be changed without its class; run " +
			hold + ", " + remove + " and " + release + "; delete that class" + goesOn, nil
	default:
		return suspend + "run in this order " + hold + ", " + remove + " and " + release + goesOn, nil
	}
}

// missingClass names the ClusterClass that a Cluster uses and that is not at the source; "" if there is none.
func (t *Transfer) missingClass(ctx context.Context, cluster *unstructured.Unstructured) (string, error) {
	class := classOf(cluster)
	if class.Name == "" {
		return "", nil
	}
	u, err := t.atSource(ctx, class)
	if err != nil || u != nil {
		return "", err
	}
	return class.String(), nil
}
