package transfer

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

// checkListing returns an error finding with all kinds that may not be listed, for example because
// the chart's values lack their provider, and with the command that grants the permission.
func (p *scope) checkListing(ctx context.Context) (found findings, err error) {
	var hidden []kube.Type
	err = each(ctx, p.workers(), slices.Collect(maps.Values(p.sourceTypes)), func(ctx context.Context, typ kube.Type) ([]kube.Type, error) {
		allowed, err := p.Source.IsAllowed(ctx, "list", typ, "", p.spec.Namespace)
		if allowed {
			return nil, err
		}
		return []kube.Type{typ}, err
	}, collect(&hidden))
	switch {
	case err != nil:
		return nil, err
	case len(hidden) == 0:
		found.AddError("source", p.hidden.Error(), "grant this permission to the identity that scuted runs as")
		return found, nil
	}
	names := make([]string, len(hidden))
	for i, typ := range hidden {
		names[i] = typ.GroupKind()
	}
	slices.Sort(names)
	found.AddError("source", fmt.Sprintf("scute may not list %s, so it cannot determine whether such objects belong to the move", strings.Join(names,
		", ")),
		"run "+kube.GrantCommand(hidden)+"; or add them to the chart's value `providers`")
	return found, nil
}

func clustersOf(w *snapshot, spec mover.Spec) (all, selected []string) {
	chooses := selection(spec).ClusterFilter()
	for _, o := range w.objects {
		if pause.IsCluster(o.Ref) && o.Ref.Namespace == spec.Namespace {
			all = append(all, o.Ref.Name)
			if chooses(o.Ref.Name) {
				selected = append(selected, o.Ref.Name)
			}
		}
	}
	slices.Sort(all)
	slices.Sort(selected)
	return all, selected
}

func (p *scope) checkSelection(context.Context) (found findings, err error) {
	there, _ := clustersOf(p.snapshot, p.spec)
	known := "namespace " + p.spec.Namespace + " has none"
	if len(there) > 0 {
		known = "namespace " + p.spec.Namespace + " has: " + strings.Join(there, ", ")
	}
	for _, name := range p.spec.Clusters {
		if !slices.Contains(there, name) {
			found.AddError(p.fieldFor("spec.selection.clusters", "NAME"), fmt.Sprintf("Cluster %q does not exist", name),
				"name a Cluster in "+p.fieldFor("the Move's namespace", "the namespace of -n")+"; "+known)
		}
	}
	if p.spec.All && len(there) == 0 {
		found.AddError(p.fieldFor("spec.selection.all", "--all"), "namespace "+p.spec.Namespace+" has no Clusters",
			p.fieldFor("create the Move in the namespace of the Clusters", "set -n to the namespace of the Clusters"))
	}
	return found, nil
}

func (p *scope) checkObjects(context.Context) (found findings, err error) {
	for _, m := range p.members.Objects {
		field, kind := m.Ref.String(), m.Ref.GroupKind()
		carried := slices.Contains(p.spec.CarryStatus, kind)
		if isSecret(m.Ref) && m.Ref.Namespace == p.spec.Namespace && m.Ref.Name == p.spec.Target.SecretName {
			found.AddError(targetField, "Secret "+m.Ref.Name+" belongs to the moved objects and would be deleted while the move still needs it",
				"copy the kubeconfig to a separate Secret and use that Secret")
		}
		if m.GitOps != "" && pause.IsRoot(m.Ref) {
			found.AddWarning(field, "it is managed by "+m.GitOps+", which may reset the pause", "suspend "+m.GitOps+" for it during the move")
		}
		found = append(found, unfitFindings(m)...)
		if m.KeepReason != "" {
			found.AddWarning(field, "it is copied and also stays at the source: "+m.KeepReason, "no action needed if that is intended")
			continue
		}
		found = append(found, inProgressFindings(m)...)
		if why := remediationText(m); why != "" {
			found.AddError(field, why, p.remediationAdvice())
		}
		if m.ManagedBy != "" {
			remedy := "stop it from changing these objects during the move, and let it manage them on the target afterwards"
			if !carried {
				remedy += "; if it does not write their status there, add " + kind + " to spec.carryStatus"
			}
			found.AddWarning("source: "+kind, m.ManagedBy+" manages objects of this kind instead of the provider (annotation "+clusterv1.ManagedByAnnotation+
				")", remedy)
		}
		if m.Ref.Kind == "PooledRemoteMachine" && m.Consumer != nil && !carried {
			found.AddError(field, "only its status records that "+m.Consumer.Short()+
				" uses it: on the target, another machine could be assigned to it and be installed over it",
				"add "+kind+" to spec.carryStatus")
		}
		if pause.IsRoot(m.Ref) {
			found = append(found, p.holderFindings(m)...)
		}
	}
	return found, nil
}

// unfitFindings returns findings about an object that is being provisioned or deleted. The target
// would provision it a second time, or create it again.
func unfitFindings(m mover.Member) (found findings) {
	field, leaves := m.Ref.String(), m.KeepReason == ""
	if m.Deleting {
		found.AddError(field, "it is being deleted", "wait until it is deleted, or check which finalizers block its deletion")
	}
	if leaves && m.Cluster != nil && !m.Cluster.InfrastructureReady {
		found.AddError(field, "its infrastructure is not provisioned yet", "wait until it is provisioned: a partly provisioned cluster cannot be moved safely")
	}
	if leaves && m.Cluster != nil && !m.Cluster.ControlPlaneInitialized {
		found.AddError(field, "its control plane is not initialized yet", "wait until it is initialized")
	}
	if leaves && m.Machine != nil && !m.Machine.HasNode {
		found.AddError(field, "it has no Node yet", "wait until its Node has joined, or delete it")
	}
	return found
}

// inProgressFindings returns findings about an unfinished upgrade or in-place update of an object.
// The management cluster that began it calls its hooks and stores its progress in a status, which
// is not copied.
func inProgressFindings(m mover.Member) (found findings) {
	if m.Cluster != nil && m.Cluster.Upgrading != "" {
		found.AddError(m.Ref.String(), "an upgrade of Kubernetes is in progress: it has not reached "+m.Cluster.Upgrading+" yet",
			"wait until the upgrade is complete: status.controlPlane.upgradePlan and status.workers.upgradePlan are then empty")
	}
	if m.Updating {
		found.AddError(m.Ref.String(), "an in-place update is in progress", "wait until the update of "+m.Ref.Short()+" is complete")
	}
	return found
}

// holderFindings returns findings about a root that another move, a Pause or a task of a run has
// paused. A move must be the only holder of the pause, because a root that it finds paused stays
// paused on the target.
func (t *Transfer) holderFindings(m mover.Member) (found findings) {
	if backup, ok := hold.RestoredBackup(m.MoveID); ok {
		found.AddError(m.Ref.String(), "it is being restored from backup "+backup, "run the restore command again to complete it; then create another Move")
	} else if holder := holderOf(m); holder.ID != "" && holder != t.holder() {
		found.AddError(m.Ref.String(), "it is being moved by "+holder.String(),
			"wait for that move or abort it; if there is no such move, remove annotation "+object.MoveAnnotation)
	}
	for _, other := range hold.SharedHolders(m.Observed) {
		remedy := "wait until the run has resumed it, or roll the run back; if there is no such run, remove annotation " + other.Annotation
		if other.Annotation != object.PauseAnnotation {
			remedy = "delete that Pause when it is no longer needed, then create another Move; if there is no such Pause, remove annotation " +
				other.Annotation
		}
		found.AddError(m.Ref.String(), "it is paused by "+other.Describe(), remedy)
	}
	return found
}

func holderOf(m mover.Member) hold.Holder { return hold.MoveHolder(m.MoveID, m.MoveLogID) }

// hasOwnAnnotation reports whether a root has this move's annotations although the log does not
// record that the move paused it, because the log was lost or restored from a backup. The move must
// not mistake its own pause for a user's.
func (t *Transfer) hasOwnAnnotation(members mover.Members) bool {
	return slices.ContainsFunc(members.Objects, func(m mover.Member) bool { return pause.IsRoot(m.Ref) && holderOf(m) == t.holder() })
}

func (p *scope) checkGraph(context.Context) (findings, error) {
	found := slices.Concat(p.members.Findings, p.members.AddressFindings, p.members.InUseFindings)
	for _, d := range p.members.DroppedOwners {
		found.AddWarning(d.Ref.String(), d.Reason, "no action needed, unless that owner is required on the target")
	}
	return found, nil
}

func (p *scope) checkDefinitions(context.Context) (found findings, err error) {
	_, wrong := p.ackTimeouts(subjects(p.members))
	for _, err := range wrong {
		found.AddError("source", err.Error(), "correct the annotation, or remove it")
	}
	return append(found, p.unservedFindings("source: ")...), nil
}

func (t *Transfer) unservedFindings(side string) (found findings) {
	for _, name := range t.unserved {
		found.AddError(side+name, "the CustomResourceDefinition is labelled for Cluster API, but the API server does not serve it, so its objects "+
			"cannot be read",
			"wait until it is established, or delete it")
	}
	return found
}

// checkDependents returns errors for objects that stay but whose owners move, because the garbage
// collector would delete them, and warnings for other objects that stay. An object with an error
// gets no warning.
func (p *scope) checkDependents(context.Context) (found findings, err error) {
	lost := make(map[string]bool)
	for _, f := range p.members.Findings {
		lost[f.Field] = true
	}
	moves := make(map[types.UID]object.Ref, len(p.members.Objects))
	known := make(map[object.Ref]bool, len(p.members.Objects))
	for _, m := range p.members.Objects {
		if known[m.Ref] = true; m.KeepReason == "" {
			moves[m.UID] = m.Ref
		}
	}
	for _, o := range p.snapshot.objects {
		owner, owned := ownerAmong(moves, o)
		if field := o.Ref.String(); owned && !known[o.Ref] && !lost[field] {
			lost[field] = true
			found.AddError(field, "it does not move, and would be deleted at the source because its owner "+owner.String()+" moves",
				"to move it, label it "+object.MoveLabel+" and with the name of the Cluster; or remove the owner reference")
		}
	}
	if unseen := slices.Compact(slices.Sorted(slices.Values(p.snapshot.forbidden))); len(unseen) > 0 {
		found.AddWarning("source", "scute may not list "+strings.Join(unseen, ", ")+
			" in other namespaces, so objects there may use the objects of the move, or be used by them",
			"grant list on these kinds in all namespaces; or make sure that no Cluster of another namespace uses the objects of the move")
	}
	for _, s := range p.members.ExclusionWarnings {
		if !lost[s.Field] {
			found = append(found, s)
		}
	}
	return found, nil
}

// ownerAmong returns an owner of the object that is in moves. ok is false if there is none, or if
// the object is scute's own or is being deleted.
func ownerAmong(moves map[types.UID]object.Ref, o object.Observed) (owner object.Ref, ok bool) {
	if o.Ref.Group == object.OwnGroup || o.Deleting {
		return owner, false
	}
	for _, reference := range o.Owners {
		if owner, ok = moves[reference.UID]; ok {
			return owner, true
		}
	}
	return owner, false
}
