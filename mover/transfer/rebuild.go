package transfer

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// traces contains the objects of a move in both clusters, found without a log.
type traces struct {
	members mover.Members
	copies  objects
	byUID   map[types.UID]object.Ref // of copies
}

func (t *Transfer) traces(ctx context.Context, s *mover.State) (found traces, err error) {
	if found.members, _, err = t.members(ctx, s.Spec, everyKind); err != nil {
		return found, err
	}
	found.copies, found.byUID = make(objects), make(map[types.UID]object.Ref)
	namespaces, err := t.copyNamespaces(ctx, s.Spec.Namespace, found.members)
	if err != nil {
		return found, err
	}
	var parts []listing
	for _, typ := range t.targetTypes {
		parts = append(parts, listingsIn(t.target, typ, namespaces...)...)
	}
	return found, t.listAll(ctx, parts, func(ref object.Ref, u *unstructured.Unstructured) {
		if t.isOurs(u) {
			found.copies[ref], found.byUID[u.GetUID()] = u, ref
		}
	})
}

// copyNamespaces returns the namespaces that may contain copies: the namespace of the move, the
// namespaces of the objects still at the source, and the namespaces of the ClusterClasses of copied
// Clusters, which are not found through the source once its Clusters are deleted.
func (t *Transfer) copyNamespaces(ctx context.Context, own string, members mover.Members) ([]string, error) {
	namespaces := map[string]bool{own: true}
	for _, m := range members.Objects {
		if m.Ref.Namespace != "" {
			namespaces[m.Ref.Namespace] = true
		}
	}
	clusters, ok := t.targetTypes["Cluster."+object.CoreGroup]
	if !ok {
		return slices.Sorted(maps.Keys(namespaces)), nil
	}
	err := t.target.List(ctx, clusters, own, func(u *unstructured.Unstructured) error {
		if class := object.Observe(u).Cluster.ClassNamespace; class != "" && t.isOurs(u) {
			namespaces[class] = true
		}
		return nil
	})
	return slices.Sorted(maps.Keys(namespaces)), err
}

func (t *Transfer) assess(found traces) mover.Assessment {
	origins := make(map[object.Ref]types.UID, len(found.copies))
	for ref, u := range found.copies {
		origins[ref] = types.UID(u.GetAnnotations()[object.OriginAnnotation])
	}
	return mover.Assess(found.members.Objects, origins, t.ID, t.log)
}

// assessProgress returns an error with what an operator can decide about a move whose log was lost.
// If neither cluster has a trace of the move, it returns TraceMissing.
func (t *Transfer) assessProgress(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	found, err := t.traces(ctx, s)
	if err != nil {
		return nil, err
	}
	a := t.assess(found)
	if a.Verdict == mover.NothingStarted {
		return mover.TraceMissing{}, nil
	}
	message, next := a.Explain(s.Spec)
	return nil, &waitError{"the event log does not contain the progress of the move: " + message, next, true}
}

// rebuild reads from both clusters the state that the direction chosen by an operator needs. It
// returns an error if that direction is not safe.
func (t *Transfer) rebuild(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	found, err := t.traces(ctx, s)
	if err != nil {
		return nil, err
	}
	a := t.assess(found)
	if a.NoTrace() {
		return mover.NothingLeft(), nil
	}
	safe := a.Verdict == mover.CanRollBack || a.Verdict == mover.NothingStarted
	if s.Way == mover.Forward {
		safe = a.Verdict == mover.MustRollForward
	}
	if !safe {
		message, next := a.Explain(s.Spec)
		return nil, &waitError{"the move cannot go " + string(s.Way) + ": " + message, next, true}
	}
	out := mover.RebuildDone{Clusters: s.Clusters, TargetID: t.targetID, Roots: t.rootsOfTraces(found), Created: make(map[object.Ref]types.UID)}
	levels := make(map[object.Ref]int)
	for ref, u := range found.copies {
		item := t.itemOfCopy(ref, u)
		item.Level = found.level(ref, levels)
		out.Items, out.Created[ref] = append(out.Items, item), u.GetUID()
		if pause.IsCluster(ref) && len(s.Clusters) == 0 {
			out.Clusters = append(out.Clusters, ref.Name)
		}
	}
	slices.SortFunc(out.Items, func(a, b mover.Item) int {
		return cmp.Or(a.Level-b.Level, object.Compare(a.Ref, b.Ref))
	})
	slices.Sort(out.Clusters)
	return out, nil
}

func (t *Transfer) itemOfCopy(ref object.Ref, u *unstructured.Unstructured) mover.Item {
	o := object.Observe(u)
	item := mover.Item{Ref: ref, Version: t.targetTypes[ref.GroupKind()].Versions[0], UID: types.UID(u.GetAnnotations()[object.OriginAnnotation]), Cluster: o.ClusterName}
	if pause.IsCluster(ref) {
		item.Cluster = ref.Name
	}
	if item.UID == "" {
		item.KeepReason = "it was copied to be shared, and stays at the source"
	}
	return item
}

// level returns the level of a copy: 0 if no copy owns it, otherwise one more than the highest
// level of its owners. A Cluster has at least level 1, because ClusterClasses must come first.
func (found traces) level(ref object.Ref, known map[object.Ref]int) int {
	if level, ok := known[ref]; ok {
		return level
	}
	known[ref] = 0 // ends a cycle of owners
	level := 0
	if pause.IsCluster(ref) {
		level = 1
	}
	for _, owner := range object.Observe(found.copies[ref]).Owners {
		if above, ok := found.byUID[owner.UID]; ok {
			level = max(level, found.level(above, known)+1)
		}
	}
	known[ref] = level
	return level
}

// rootsOfTraces returns the roots that the move paused: roots of the source with the move's
// annotations, and roots that only the target has.
func (t *Transfer) rootsOfTraces(found traces) []pause.Root {
	var roots []pause.Root
	seen := make(map[object.Ref]bool)
	for _, m := range found.members.Objects {
		if pause.IsRoot(m.Ref) && holderOf(m) == t.holder() {
			roots = append(roots, pause.Root{Ref: m.Ref, UID: m.UID, Found: m.FoundPaused})
			seen[m.Ref] = true
		}
	}
	for ref, u := range found.copies {
		origin := u.GetAnnotations()[object.OriginAnnotation]
		if !pause.IsRoot(ref) || seen[ref] || origin == "" {
			continue
		}
		_, paused := u.GetAnnotations()[object.FoundPausedAnnotation]
		roots = append(roots, pause.Root{Ref: ref, UID: types.UID(origin), Found: paused})
	}
	slices.SortFunc(roots, func(a, b pause.Root) int { return object.Compare(a.Ref, b.Ref) })
	return roots
}

// abandonTarget ends a move without its target. It resumes the source if that still has all
// objects; otherwise the source stays paused.
func (t *Transfer) abandonTarget(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	source := *s
	if s.Lost != nil {
		members, _, err := t.members(ctx, s.Spec, everyKind)
		if err != nil {
			return nil, err
		}
		source.Roots = t.rootsOfTraces(traces{members: members})
		if name, missing := missingCluster(s.Spec, members); missing {
			return mover.Abandoned{Reason: "Cluster " + name + " is not at the source, and the event log does not record why"}, nil
		}
		if i := slices.IndexFunc(members.Objects, func(m mover.Member) bool { return m.Released }); i >= 0 {
			return mover.Abandoned{Reason: members.Objects[i].Ref.String() + ": a move has removed its finalizers at the source to delete it"}, nil
		}
	}
	why, err := t.emptiedReason(ctx, &source)
	if err != nil {
		return nil, err
	}
	if why != "" {
		return mover.Abandoned{Reason: why}, nil
	}
	return t.restoreSource(ctx, &source)
}

func missingCluster(spec mover.Spec, members mover.Members) (name string, missing bool) {
	there := make(map[string]bool)
	for _, m := range members.Objects {
		if pause.IsCluster(m.Ref) {
			there[m.Ref.Name] = true
		}
	}
	for _, name := range spec.Clusters {
		if !there[name] {
			return spec.Namespace + "/" + name, true
		}
	}
	return "of namespace " + spec.Namespace, len(there) == 0
}

func (t *Transfer) emptiedReason(ctx context.Context, s *mover.State) (string, error) {
	there, err := t.listPresent(ctx, t.Source, s.Plan)
	if err != nil {
		return "", err
	}
	for _, item := range s.Plan {
		if why := incompleteReason(item, there[item.Ref]); why != "" && item.KeepReason == "" {
			return item.Ref.String() + ": " + why, nil
		}
	}
	err = t.checkUnpause(ctx, s)
	var stranded *waitError
	if errors.As(err, &stranded) {
		return stranded.message, nil
	}
	return "", err
}
