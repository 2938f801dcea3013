package transfer

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause/hold"
)

func (p *scope) checkCreation(ctx context.Context) (findings, error) {
	verbs := []string{"get", "list", "create", "patch", "delete"}
	if p.command {
		verbs = verbs[:4] // a restore deletes nothing
	}
	var denied permissions
	var ungranted, absent findings
	var missing map[string]bool
	questions, asking := errgroup.WithContext(ctx)
	questions.Go(func() (err error) {
		denied, ungranted, err = p.permissions(asking, p.target, p.targetTypes, p.targetField(), verbs...)
		return err
	})
	questions.Go(func() (err error) {
		missing, absent, err = p.missingNamespaces(asking)
		return err
	})
	if err := questions.Wait(); err != nil {
		return nil, err
	}
	refused, err := p.tryCreation(ctx, denied, missing)
	return slices.Concat(ungranted, absent, refused), err
}

func (p *scope) missingNamespaces(ctx context.Context) (missing map[string]bool, found findings, err error) {
	missing = make(map[string]bool)
	for _, m := range p.members.Objects {
		namespace := m.Ref.Namespace
		if _, known := missing[namespace]; namespace == "" || known {
			continue
		}
		have, err := p.target.Find(ctx, kube.NamespaceType(), object.Ref{Name: namespace})
		if err != nil {
			return nil, nil, err
		}
		if missing[namespace] = have == nil; have != nil {
			continue
		}
		allowed, err := p.target.IsAllowed(ctx, "create", kube.NamespaceType(), "", "")
		switch field := "target: namespace " + namespace; {
		case err != nil:
			return nil, nil, err
		case !allowed:
			found.AddError(field, "it does not exist and scute may not create namespaces on the target",
				"create the namespace on the target, or grant create on namespaces")
		default:
			found.AddWarning(field, "it does not exist, so no object could be checked in a dry run; "+p.fieldFor("the move", "the restore")+" will create it",
				"create it now to have every object checked")
		}
	}
	return missing, found, nil
}

// tryCreation creates copies on the target in a dry run. It skips objects whose kind is not served,
// or whose namespace does not exist.
func (p *scope) tryCreation(ctx context.Context, denied permissions, missing map[string]bool) (found findings, err error) {
	var tried []mover.Member
	var items []mover.Item
	for _, m := range p.members.Objects {
		onto, served := p.targetTypes[m.Ref.GroupKind()]
		if !missing[m.Ref.Namespace] && denied.allows("create", m.Ref) && served && slices.Contains(onto.Versions, m.Version) {
			tried, items = append(tried, m), append(items, mover.ItemOf(m, ""))
		}
	}
	err = eachOriginal(ctx, p.Transfer, items, func(ctx context.Context, i int, source *unstructured.Unstructured) (findings, error) {
		if source == nil {
			return nil, nil // deleted meanwhile; the members are listed again after the pause
		}
		copied, err := p.dryCopy(tried[i], source)
		if err != nil {
			return nil, err
		}
		return p.tryCreate(ctx, tried[i], p.targetTypes[tried[i].Ref.GroupKind()].At(tried[i].Version), copied)
	}, collect(&found))
	return found, err
}

func (p *scope) dryCopy(m mover.Member, source *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	uids := make(map[object.Ref]types.UID)
	for _, o := range m.MemberOwners {
		uids[o.Ref] = "00000000-0000-0000-0000-000000000000" // a dry run stores nothing, so the owner need not exist
	}
	item := mover.ItemOf(m, "")
	copied, err := mover.Rewrite(source, item, p.copyAnnotations(item, false), uids)
	if err == nil && m.KeepReason == "" {
		pauseCopy(copied)
	}
	return copied, err
}

func (p *scope) tryCreate(ctx context.Context, m mover.Member, onto kube.Type, copied *unstructured.Unstructured) (found findings, err error) {
	_, err = p.target.Create(ctx, onto, copied, metav1.DryRunAll)
	switch {
	case apierrors.IsAlreadyExists(err):
		return p.checkCollision(ctx, onto, m, copied)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
		remedy := "make the target accept it (quota, admission, provider version)"
		if strings.Contains(err.Error(), "set finalizers on") { // OwnerReferencesPermissionEnforcement
			remedy = "on the target, apply the ClusterRole scute-move-target of this chart: it grants update on the finalizers of owners"
		}
		found.AddError("target: "+m.Ref.String(), "the target would reject it: "+err.Error(), remedy)
		return found, nil
	default:
		return nil, err
	}
}

func (p *scope) checkCollision(ctx context.Context, onto kube.Type, m mover.Member, copied *unstructured.Unstructured) (found findings, err error) {
	have, err := p.target.Find(ctx, onto, m.Ref)
	if have == nil {
		return nil, err
	}
	field := "target: " + m.Ref.String()
	switch holder := hold.FirstHolder(have); {
	case holder == p.holder() && p.command:
		return nil, nil // from an earlier process of this restore
	case holder != (hold.Holder{}) && p.command:
		found.AddError(field, "it is held by "+holder.Describe(), "wait until that has ended, then run the command again")
		return found, nil
	case holder != (hold.Holder{}) && holder != p.holder():
		found.AddWarning(field, "it is held by "+holder.Describe(), "no action needed: the move waits until that has ended")
	}
	if same, why := isAdoptable(m.KeepReason != "", m.Ref, copied, have); !same {
		what, remedy := p.describeCollision(why, have)
		found.AddError(field, "an object with this name already exists and is different: "+what, remedy)
	}
	return found, nil
}
