package transfer

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// findings gathers the answers of a preflight, from many goroutines.
type findings struct {
	mu   sync.Mutex
	list []mover.Finding
}

func (f *findings) add(severity mover.Severity, field, message, remedy string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.list = append(f.list, mover.Finding{Severity: severity, Field: field, Message: message, Remedy: remedy})
}

func (f *findings) fail(field, message, remedy string) {
	f.add(mover.Error, field, message, remedy)
}

func (f *findings) warn(field, message, remedy string) {
	f.add(mover.Warning, field, message, remedy)
}

// warnOnce is warn for what is the same of many objects.
func (f *findings) warnOnce(field, message, remedy string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	one := mover.Finding{Severity: mover.Warning, Field: field, Message: message, Remedy: remedy}
	if !slices.Contains(f.list, one) {
		f.list = append(f.list, one)
	}
}

// refusal is a RefusedError if any of them is an error.
func (f *findings) refusal() error {
	if slices.ContainsFunc(f.list, func(one mover.Finding) bool { return one.Severity == mover.Error }) {
		return &RefusedError{Findings: f.sorted()}
	}
	return nil
}

// sorted: errors first, then by field, so that the same world gives the same answer.
func (f *findings) sorted() []mover.Finding {
	slices.SortFunc(f.list, func(a, b mover.Finding) int {
		return cmp.Or(cmp.Compare(a.Severity, b.Severity), cmp.Compare(a.Field, b.Field), cmp.Compare(a.Message, b.Message))
	})
	return f.list
}

// preflight asks both sides everything that can be asked before anything is changed, and gives all answers at once.
func (t *Transfer) preflight(ctx context.Context, s *mover.State) (mover.Outcome, error) {
	f := &findings{}
	t.target, t.targetID = nil, ""
	if err := t.connect(ctx, s.Spec, "", false); err != nil {
		return nil, err
	}
	var unreached error
	var reached sync.WaitGroup
	reached.Go(func() { unreached = t.connect(ctx, s.Spec, "", true) }) // while the source is looked at
	members, w, err := t.members(ctx, s.Spec, everyKind)
	reached.Wait()
	var clusters []string
	var seen bool
	switch {
	case apierrors.IsForbidden(err):
		if err := t.checkSight(ctx, s.Spec, err, f); err != nil {
			return nil, err
		}
	case err != nil:
		return nil, err
	case t.ownMark(members):
		t.target = nil // it is reached again when the log knows which one it is
		return mover.OwnMarkSeen{}, nil
	default:
		clusters = t.checkSelection(s.Spec, w, f)
		t.checkSource(s.Spec, members, f)
		checkLeft(members, w, f)
		if err := t.checkRemediations(ctx, members, f); err != nil {
			return nil, err
		}
		seen = true
	}
	// Each side is asked many questions. Neither's answers change what the other is asked.
	both, sideCtx := errgroup.WithContext(ctx)
	if seen {
		both.Go(func() error { return t.checkRemoval(sideCtx, members, f) })
		both.Go(func() error { return t.checkLost(sideCtx, s.Spec, members, w, f) })
		if t.target != nil {
			both.Go(func() error { return t.checkExtensions(sideCtx, members, w, f) })
		}
	}
	both.Go(func() error { return t.checkTarget(sideCtx, s.Spec, members, unreached, f) })
	if err := both.Wait(); err != nil {
		return nil, err
	}
	if err := t.checkWithheld(ctx, s.Spec.Namespace, members, f); err != nil {
		return nil, err
	}
	if err := t.checkMissing(ctx, members, f); err != nil {
		return nil, err
	}
	return mover.PreflightDone{Clusters: clusters, Target: t.targetID, Findings: f.sorted()}, nil
}

// What a move does with each kind on either side.
func sourceVerbs() []string { return []string{"get", "list", "patch", "delete"} }

func (t *Transfer) targetVerbs() []string {
	verbs := []string{"get", "list", "create", "patch"}
	if t.command {
		return verbs // a restore deletes nothing
	}
	return append(verbs, "delete")
}

// checkSight names all kinds that may not be listed, such as those of a provider that is missing in the chart's values, and the
// command that grants them.
func (t *Transfer) checkSight(ctx context.Context, spec mover.Spec, cause error, f *findings) error {
	var mu sync.Mutex
	var unseen []kube.Type
	err := parallel(ctx, t.workers(), slices.Collect(maps.Values(t.types)), func(ctx context.Context, typ kube.Type) error {
		allowed, err := t.Source.May(ctx, "list", typ, "", spec.Namespace)
		if err == nil && !allowed {
			mu.Lock()
			defer mu.Unlock()
			unseen = append(unseen, typ)
		}
		return err
	})
	switch {
	case err != nil:
		return err
	case len(unseen) == 0:
		f.fail("source", cause.Error(), "grant it to the identity that scuted runs as")
		return nil
	}
	names := make([]string, len(unseen))
	for i, typ := range unseen {
		names[i] = typ.GroupKind()
	}
	slices.Sort(names)
	f.fail("source", fmt.Sprintf("scute may not list %s, so it cannot tell whether such objects belong to what moves", strings.Join(names, ", ")),
		"run "+kube.GrantCommand(unseen)+"; or add them to the chart's value `providers`")
	return nil
}

func (t *Transfer) checkSelection(spec mover.Spec, w *world, f *findings) []string {
	var there, chosen []string
	chooses := selection(spec).Chooses()
	for _, o := range w.objects {
		if pause.IsCluster(o.Ref) && o.Ref.Namespace == spec.Namespace {
			there = append(there, o.Ref.Name)
			if chooses(o.Ref.Name) {
				chosen = append(chosen, o.Ref.Name)
			}
		}
	}
	slices.Sort(there)
	slices.Sort(chosen)
	known := "there are none in namespace " + spec.Namespace
	if len(there) > 0 {
		known = "in namespace " + spec.Namespace + " there are: " + strings.Join(there, ", ")
	}
	for _, name := range spec.Clusters {
		if _, found := slices.BinarySearch(there, name); !found {
			f.fail(t.field("spec.selection.clusters", "NAME"), fmt.Sprintf("Cluster %q does not exist", name),
				"name a Cluster of "+t.field("the Move's own namespace", "the namespace that -n names")+"; "+known)
		}
	}
	if spec.All && len(there) == 0 {
		f.fail(t.field("spec.selection.all", "--all"), "namespace "+spec.Namespace+" has no Clusters",
			t.field("make the Move in the namespace of the Clusters", "name the namespace of the Clusters with -n"))
	}
	return chosen
}

// checkSource looks for what must not be moved now.
func (t *Transfer) checkSource(spec mover.Spec, members mover.Members, f *findings) {
	for _, m := range members.Objects {
		field := m.Ref.String()
		if isSecret(m.Ref) && m.Ref.Namespace == spec.Namespace && m.Ref.Name == spec.Target.SecretName {
			f.fail(targetField, "Secret "+m.Ref.Name+" belongs to what is moved, and would be deleted while it is still needed",
				"copy the kubeconfig to a separate Secret and name that one")
		}
		if m.GitOps != "" && pause.IsRoot(m.Ref) {
			f.warn(field, "it is managed by "+m.GitOps+", which may reset the pause", "suspend "+m.GitOps+" for it while it moves")
		}
		f.list = append(f.list, unfit(m)...)
		if m.Keep != "" {
			f.warn(field, "it is copied and also stays at the source: "+m.Keep, "nothing, if that is what you want")
			continue
		}
		f.list = append(f.list, inProgress(m)...)
		if why := remediating(m); why != "" {
			f.fail(field, why, t.remediationsNext())
		}
		if m.ManagedBy != "" {
			remedy := "have it leave them alone while they move, and then manage those of the target"
			if kind := m.Ref.GroupKind(); !slices.Contains(spec.CarryStatus, kind) {
				remedy += "; if it does not write its status there, name " + kind + " in spec.carryStatus"
			}
			f.warnOnce("source: "+m.Ref.GroupKind(), m.ManagedBy+" manages objects of this kind, and not its provider (annotation "+clusterv1.ManagedByAnnotation+")", remedy)
		}
		if kind := m.Ref.GroupKind(); m.Ref.Kind == "PooledRemoteMachine" && m.Consumer != nil && !slices.Contains(spec.CarryStatus, kind) {
			f.fail(field, "only its status says that "+m.Consumer.Short()+" has it: on the target another machine could get it, and be installed over it",
				"name "+kind+" in spec.carryStatus")
		}
		if pause.IsRoot(m.Ref) {
			t.checkMark(m, f)
		}
	}
	f.list = slices.Concat(f.list, members.Findings, members.Addresses, members.Taken)
	_, wrong := t.ackLimits(subjects(members))
	for _, err := range wrong {
		f.fail("source", err.Error(), "correct the annotation, or remove it")
	}
	for _, name := range t.unserved {
		f.fail("source: "+name, "its definition is labelled for Cluster API, but the API server does not serve it, so its objects cannot be seen",
			"wait until the definition is established, or remove it")
	}
	for _, d := range members.Dropped {
		f.warn(d.Ref.String(), d.Why, "nothing, if that owner is not needed on the target")
	}
}

// unfit says why an object cannot be moved in the state that it is in, and what to do: what is half made, or half gone, would be
// made again, or be there again, on the target.
func unfit(m mover.Member) (found []mover.Finding) {
	fail := func(message, remedy string) {
		found = append(found, mover.Finding{Severity: mover.Error, Field: m.Ref.String(), Message: message, Remedy: remedy})
	}
	if m.Deleting {
		fail("it is being deleted", "wait until it is gone, or find out what holds it: its finalizers")
	}
	if m.Keep != "" {
		return found
	}
	if m.Cluster != nil && !m.Cluster.InfrastructureReady {
		fail("its infrastructure is not provisioned yet", "wait until it is: what is half made cannot be moved safely")
	}
	if m.Cluster != nil && !m.Cluster.ControlPlaneInitialized {
		fail("its control plane is not initialized yet", "wait until it is")
	}
	if m.Machine != nil && !m.Machine.HasNode {
		fail("it has no Node yet", "wait until it has joined, or delete it")
	}
	return found
}

// inProgress finds an upgrade or an update in place that has not ended: the hooks that it waits for are called by the management cluster that
// began it, and its steps are in a status, which does not move.
func inProgress(m mover.Member) (found []mover.Finding) {
	fail := func(message, remedy string) {
		found = append(found, mover.Finding{Severity: mover.Error, Field: m.Ref.String(), Message: message, Remedy: remedy})
	}
	if m.Cluster != nil && m.Cluster.Upgrading != "" {
		fail("an upgrade of Kubernetes is half way: it has still to reach "+m.Cluster.Upgrading, "wait until the upgrade is over: status.controlPlane.upgradePlan and status.workers.upgradePlan are empty then")
	}
	if m.Updating {
		fail("an update in place is half way", "wait until the update of "+m.Ref.Short()+" is over")
	}
	return found
}

// checkLeft reports what stays and does not belong to a Cluster that moves.
func checkLeft(members mover.Members, w *world, f *findings) {
	lost := checkDependants(members, w, f)
	if len(w.unseen) > 0 {
		slices.Sort(w.unseen)
		f.warn("source", "whether objects of other namespaces use what moves, or are used by it, is not known: scute may not list "+strings.Join(slices.Compact(w.unseen), ", ")+" there",
			"grant list on these kinds in all namespaces; or make sure that no Cluster of another namespace uses what moves")
	}
	for _, s := range members.Stays {
		if !lost[s.Field] {
			f.list = append(f.list, s)
		}
	}
}

// checkDependants: what does not move and is owned by what does. The garbage collector would remove it once its owner is
// deleted at the source. What has an error already is not reported twice.
func checkDependants(members mover.Members, w *world, f *findings) map[string]bool {
	lost := make(map[string]bool)
	for _, found := range members.Findings {
		lost[found.Field] = true
	}
	moves := make(map[types.UID]object.Ref, len(members.Objects))
	known := make(map[object.Ref]bool, len(members.Objects))
	for _, m := range members.Objects {
		if known[m.Ref] = true; m.Keep == "" {
			moves[m.UID] = m.Ref
		}
	}
	for _, o := range w.objects {
		if known[o.Ref] || o.Ref.Group == object.OwnGroup || o.Deleting {
			continue
		}
		for _, owner := range o.Owners {
			if of, ok := moves[owner.UID]; ok && !lost[o.Ref.String()] {
				lost[o.Ref.String()] = true
				f.fail(o.Ref.String(), "it does not move, and would be removed from the source with "+of.String()+", which moves and owns it",
					"label it "+object.MoveLabel+" and with the name of the Cluster if it is to move, or take the owner reference off")
			}
		}
	}
	return lost
}

// checkMark finds roots with a mark: they belong to another move, or a Pause or a task of a run holds their pause. A move holds it
// alone, because what it finds paused it leaves paused on the target.
func (t *Transfer) checkMark(m mover.Member, f *findings) {
	if backup, ok := hold.Restoring(m.Mark); ok {
		f.fail(m.Ref.String(), "it is being restored from backup "+backup, "run the command that restores it once more: it continues; then create another Move")
	} else if holder := markOf(m); holder.Holder != "" && holder != t.mark() {
		f.fail(m.Ref.String(), "it is being moved by "+holder.String(), "wait for that move or abort it; if it is long gone, remove annotation "+object.MoveAnnotation)
	}
	for _, other := range hold.Others(m.Observed) {
		remedy := "wait until the run has resumed it, or roll the run back; if there is no such run, remove annotation " + other.Annotation
		if other.Annotation != object.PauseAnnotation {
			remedy = "delete that Pause when nobody needs it any more, then create another Move; if there is no such Pause, remove annotation " + other.Annotation
		}
		f.fail(m.Ref.String(), "it is held paused by "+other.Named(), remedy)
	}
}

func markOf(m mover.Member) hold.Mark { return hold.ByMove(m.Mark, m.MarkLog) }

// ownMark finds the move's own mark before its pause. This happens only if the log that recorded the pause was lost, or
// restored to an earlier state. If the move continued, it would mistake its pause for one of the user.
func (t *Transfer) ownMark(members mover.Members) bool {
	return slices.ContainsFunc(members.Objects, func(m mover.Member) bool { return pause.IsRoot(m.Ref) && markOf(m) == t.mark() })
}

// access is a verb on a kind in a namespace.
type access struct{ kind, namespace, verb string }
