package transfer

import (
	"context"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause/hold"
)

// checkCreation checks whether the move may create on the target. It creates in a dry run every object that webhooks, quotas or validation there may
// refuse.
func (p *scope) checkCreation(ctx context.Context) (findings, error) {
	verbs := []string{"get", "list", "create", "patch", "delete"}
	if p.command {
		verbs = verbs[:4] // a restore deletes nothing
	}
	var d *dryRuns
	var allowed permissions
	var denied, absent, refused findings
	var missing, doubtful map[string]bool
	questions, asking := errgroup.WithContext(ctx)
	questions.Go(func() (err error) {
		d, allowed, denied, err = p.dryRuns(asking, p.target, p.targetTypes, p.targetField(), verbs...)
		return err
	})
	questions.Go(func() (err error) {
		missing, doubtful, absent, err = p.namespaces(asking)
		return err
	})
	err := questions.Wait()
	if err == nil {
		refused, err = p.tryCreation(ctx, d, allowed, missing, doubtful)
	}
	return slices.Concat(denied, absent, refused), err
}

// namespaces returns the namespaces that the target lacks, and those in which any object may be refused because they are being deleted or have a
// quota.
func (p *scope) namespaces(ctx context.Context) (missing, doubtful map[string]bool, found findings, err error) {
	missing, doubtful = make(map[string]bool), make(map[string]bool)
	for _, m := range p.members.Objects {
		namespace := m.Ref.Namespace
		if _, known := missing[namespace]; namespace == "" || known {
			continue
		}
		have, err := p.target.Find(ctx, kube.NamespaceType(), object.Ref{Name: namespace})
		if err != nil {
			return nil, nil, nil, err
		}
		if missing[namespace] = have == nil; have != nil {
			limited := false
			err := p.target.ListMetadata(ctx, kube.ResourceQuotaType(), namespace, func(*unstructured.Unstructured) error {
				limited = true
				return nil
			})
			if err != nil && !apierrors.IsForbidden(err) {
				return nil, nil, nil, err
			}
			doubtful[namespace] = limited || err != nil || have.GetDeletionTimestamp() != nil
			continue
		}
		allowed, err := p.target.IsAllowed(ctx, "create", kube.NamespaceType(), "", "")
		switch field := "target: namespace " + namespace; {
		case err != nil:
			return nil, nil, nil, err
		case !allowed:
			found.AddError(field, "it does not exist and scute may not create namespaces on the target",
				"create the namespace on the target, or grant create on namespaces")
		default:
			found.AddWarning(field, "it does not exist, so no object could be checked in a dry run; "+p.fieldFor("the move", "the restore")+" will create it",
				"create it now to have every object checked")
		}
	}
	return missing, doubtful, found, nil
}

// tryCreation tries to create objects of kinds that the target serves, in namespaces that it has.
func (p *scope) tryCreation(ctx context.Context, d *dryRuns, allowed permissions, missing, doubtful map[string]bool) (found findings, err error) {
	var possible []mover.Member
	for _, m := range p.members.Objects {
		onto, served := p.targetTypes[m.Ref.GroupKind()]
		if !missing[m.Ref.Namespace] && allowed.allows("create", m.Ref) && served && slices.Contains(onto.Versions, m.Version) {
			possible = append(possible, m)
		}
	}
	tried, byAdmission, err := p.creations(ctx, d, possible, doubtful, allowed)
	if err != nil {
		return nil, err
	}
	want := make([]mover.Item, len(tried))
	for i, m := range tried {
		want[i] = mover.ItemOf(m, "")
	}
	err = eachOriginal(ctx, p.Transfer, want, func(ctx context.Context, i int, source *unstructured.Unstructured) (findings, error) {
		if source == nil {
			return nil, nil // it was deleted meanwhile; the members are listed again after the pause
		}
		copied, err := p.dryCopy(tried[i], source)
		onto := p.targetTypes[tried[i].Ref.GroupKind()].At(tried[i].Version)
		if err != nil || !byAdmission[i] && d.schemas[schemaKey(onto)].Accepts(ctx, copied) {
			return nil, err
		}
		return p.tryCreate(ctx, tried[i], onto, copied)
	}, collect(&found))
	return found, err
}

// creations returns the objects to create in a dry run. byAdmission is false if only the validation of the target could refuse an object. Secrets and
// ConfigMaps are skipped then, because all API servers validate them in the same way.
func (p *scope) creations(
	ctx context.Context, d *dryRuns, members []mover.Member, doubtful map[string]bool, allowed permissions,
) (tried []mover.Member, byAdmission []bool, err error) {
	must := make([]bool, len(members))
	var rest []mover.Item
	for i, m := range members {
		must[i] = d.mustTry(admissionv1.Create, p.targetTypes[m.Ref.GroupKind()], m) || doubtful[m.Ref.Namespace] || !allowed.allows("list", m.Ref)
		if !must[i] {
			rest = append(rest, mover.ItemOf(m, ""))
		}
	}
	there, err := p.listPresent(ctx, p.target, rest) // an object whose name is in use is tried too
	if err != nil {
		return nil, nil, err
	}
	var validated []kube.Type
	for i, m := range members {
		must[i] = must[i] || there[m.Ref] != nil
		typ := p.targetTypes[m.Ref.GroupKind()].At(m.Version)
		if !must[i] && typ.IsCore() {
			continue
		}
		tried, byAdmission = append(tried, m), append(byAdmission, must[i])
		if !must[i] {
			validated = append(validated, typ)
		}
	}
	return tried, byAdmission, d.readSchemas(ctx, p.target, p.workers(), validated)
}

// dryCopy returns the copy of an object for a dry run.
func (p *scope) dryCopy(m mover.Member, source *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	uids := make(map[object.Ref]types.UID)
	for _, o := range m.MemberOwners {
		uids[o.Ref] = "00000000-0000-0000-0000-000000000000" // nothing is stored, so the owner need not exist
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
		return nil, nil // an earlier process of this restore created it
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
