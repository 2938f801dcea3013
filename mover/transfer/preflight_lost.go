package transfer

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/view"
)

// checkLost returns findings about hosted control planes, and about objects that do not move but
// would be garbage collected, because their owners move.
func (p *scope) checkLost(ctx context.Context) (found findings, err error) {
	for _, h := range p.members.Hosted {
		addLoss(&found, p.spec, h.Ref, h.Reason+": its data is in this management cluster and does not move; the target would create "+replacement(h.Ref),
			keepAdvice(h.Ref))
	}
	lost, unlisted, err := p.lostObjects(ctx, p.members.Objects, p.snapshot)
	for _, l := range lost {
		what := "it"
		if n := len(l.Dependents); n > 0 {
			what += " and its " + view.Count(n, "dependent")
		}
		addLoss(&found, p.spec, l.Ref, "the garbage collector would delete "+what+" at the source, because its owner "+l.Owner.String()+" moves", keepAdvice(l.Ref))
	}
	if len(unlisted) > 0 {
		found.AddWarning("source", "scute may not list these kinds; after the move, the garbage collector deletes their objects if the move took their "+
			"owners: "+firstNames(unlisted),
			"grant list on them to the identity that scuted runs as, or make sure that no object of the move owns such an object")
	}
	return found, err
}

func addLoss(f *findings, spec mover.Spec, ref object.Ref, what, remedy string) {
	if slices.Contains(spec.AcceptLoss, ref.GroupKind()) {
		f.AddWarning(ref.String(), "it will be lost, as accepted: "+what, "abort if it is still needed")
	} else {
		f.AddError(ref.String(), what, remedy)
	}
}

// replacement returns a description of what the target would create in place of a workload of the
// source.
func replacement(ref object.Ref) string {
	if strings.HasSuffix(ref.Kind, "Machine") {
		return "another machine"
	}
	return "an empty control plane"
}

func keepAdvice(ref object.Ref) string {
	return "do not move its Cluster; or, if it may be lost, add " + ref.GroupKind() + " to spec.acceptLoss of another Move"
}

func firstNames(names []string) string {
	const first = 20
	return strings.Join(view.More(slices.Clone(names[:min(len(names), first)]), len(names)), ", ")
}

// lostObjects returns the objects that the garbage collector would delete at the source after the
// members are deleted: objects of kinds that do not move, and copied objects that should stay. It
// omits the objects that checkDependents finds in the snapshot w. unlisted contains the kinds that
// may not be listed.
func (t *Transfer) lostObjects(ctx context.Context, members []mover.Member, w *snapshot) (lostObjects []mover.LostObject, unlisted []string, err error) {
	others, unlisted, err := t.listOthers(ctx, members)
	if err != nil {
		return nil, nil, err
	}
	looked := make(map[object.Ref]bool, len(w.objects))
	for _, o := range w.objects {
		looked[o.Ref] = true
	}
	left := make(map[types.UID]bool)
	spared := make(map[object.Ref][]object.Owner) // the owners that detachRemaining removes from copied objects that stay
	for _, m := range members {
		if looked[m.Ref] = m.KeepReason == ""; m.KeepReason == "" {
			left[m.UID] = true
		} else {
			spared[m.Ref] = m.MemberOwners
		}
	}
	seen := slices.Concat(w.objects, others)
	for i, o := range seen {
		seen[i].Owners = slices.DeleteFunc(slices.Clone(o.Owners), func(owner object.Owner) bool {
			return left[owner.UID] && slices.ContainsFunc(spared[o.Ref], func(of object.Owner) bool { return of.Ref == owner.Ref })
		})
	}
	lostObjects = mover.GarbageCollected(members, seen)
	return slices.DeleteFunc(lostObjects, func(l mover.LostObject) bool { return looked[l.Ref] }), unlisted, nil
}

// newlyLost returns the objects that the garbage collector would delete and whose loss was not
// accepted. They were created after the preflight.
func (t *Transfer) newlyLost(ctx context.Context, s *mover.State, w *snapshot) (found []mover.ObjectReason, err error) {
	members := make([]mover.Member, len(s.Plan))
	for i, item := range s.Plan {
		members[i] = memberOf(item)
	}
	lost, _, err := t.lostObjects(ctx, members, w)
	for _, l := range lost {
		if !slices.Contains(s.Spec.AcceptLoss, l.Ref.GroupKind()) {
			found = append(found, mover.ObjectReason{Ref: l.Ref, Reason: "the garbage collector would delete it, because its owner " + l.Owner.String() +
				" moves"})
		}
	}
	return found, err
}

// listOthers returns the objects of all kinds that do not move, in the namespaces from which
// members move, and the kinds that may not be listed. It omits scute's own kinds and Events, which
// have no owners.
func (t *Transfer) listOthers(ctx context.Context, members []mover.Member) (listOthers []object.Observed, unlisted []string, err error) {
	if t.listable == nil {
		if t.listable, err = t.Source.NamespacedTypes(ctx); err != nil {
			return nil, nil, err
		}
	}
	namespaces := make(map[string]bool)
	for _, m := range members {
		if m.KeepReason == "" && m.Ref.Namespace != "" {
			namespaces[m.Ref.Namespace] = true
		}
	}
	var parts []listing
	denied := make(map[string]bool)
	for namespace := range namespaces {
		rules, err := t.Source.Rules(ctx, namespace)
		if err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return nil, nil, err
		}
		for _, typ := range t.listable {
			_, moves := t.sourceTypes[typ.GroupKind()]
			switch {
			case moves, typ.Group == object.OwnGroup, typ.Kind == "Event":
			case rules.Complete && !rules.Grants("list", typ, namespace):
				denied[typ.GroupKind()] = true
			default:
				parts = append(parts, listing{side: t.Source, typ: typ, namespace: namespace})
			}
		}
	}
	var mu sync.Mutex
	err = kube.ForEach(ctx, t.workers(), parts, func(ctx context.Context, p listing) error {
		err := t.Source.ListMetadata(ctx, p.typ, p.namespace, func(u *unstructured.Unstructured) error {
			if o := object.Observe(u); !o.Deleting {
				mu.Lock()
				defer mu.Unlock()
				listOthers = append(listOthers, o)
			}
			return nil
		})
		if unavailable(err) {
			mu.Lock()
			defer mu.Unlock()
			denied[p.typ.GroupKind()] = true
			return nil
		}
		return err
	})
	return listOthers, slices.Sorted(maps.Keys(denied)), err
}

// unavailable reports whether an error means that a kind cannot be listed, because that is not
// permitted or its API service does not support it.
func unavailable(err error) bool {
	return apierrors.IsForbidden(err) || apierrors.IsNotFound(err) || apierrors.IsMethodNotSupported(err) || apierrors.IsNotAcceptable(err) || apierrors.IsServiceUnavailable(err)
}
