package transfer

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/version"

	"scute.dev/kube"
	"scute.dev/kube/guard"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
	"scute.dev/pause/hold"
)

const targetField = "spec.target.kubeconfigSecretRef"

// field is where a user says something: in a field of a Move, or to a command.
func (t *Transfer) field(ofMove, ofCommand string) string {
	if t.command {
		return ofCommand
	}
	return ofMove
}

func (t *Transfer) targetField() string { return t.field(targetField, "target") }

// again is what a user does when the cause of a refusal is gone.
func (t *Transfer) again() string { return t.field("create another Move", "run the command again") }

// checkTarget asks the target: is it there, is it another cluster, does it serve the kinds, may we, would it take each
// object. Every object is created there in a dry run, so that webhooks, quota and validation speak now. unreached is why it
// could not be reached, if it could not.
func (t *Transfer) checkTarget(ctx context.Context, spec mover.Spec, members mover.Members, unreached error, f *findings) error {
	if unreached != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.fail(t.targetField(), unreached.Error(), whyUnreached(unreached))
		return nil
	}
	here, err := t.sourceID(ctx)
	if err != nil {
		return err
	}
	if here == t.targetID && t.archive == nil { // a restore may be to the cluster that was read
		f.fail(targetField, "the target is this very cluster", "put the kubeconfig of another management cluster into the Secret")
		return nil
	}
	if _, ok := t.onto["Cluster."+object.CoreGroup]; !ok {
		f.fail(t.targetField(), "the target serves no Clusters of Cluster API: it is no management cluster", "install Cluster API there (clusterctl init), or name the right cluster")
		return nil
	}
	t.checkKinds(members, f)
	// None of these answers changes what else is asked.
	var tr *trials
	var allowed permissions
	var missing, doubtful map[string]bool
	questions, asking := errgroup.WithContext(ctx)
	questions.Go(func() error { return t.checkProviders(asking, f) })
	questions.Go(func() (err error) {
		tr, allowed, err = t.newTrials(asking, t.target, t.onto, members, t.targetVerbs(), f)
		return err
	})
	questions.Go(func() error { return t.checkStatus(asking, spec, f) })
	questions.Go(func() (err error) {
		missing, doubtful, err = t.checkNamespaces(asking, members, f)
		return err
	})
	if err := questions.Wait(); err != nil {
		return err
	}
	return t.tryAll(ctx, tr, members, allowed, missing, doubtful, f)
}

// whyUnreached is what to do about a target that was not reached.
func whyUnreached(err error) string {
	var known *FinalError
	switch {
	case errors.As(err, &known) && known.Next != "":
		return known.Next
	case errors.Is(err, guard.ErrDenied):
		return allowAddress
	case apierrors.IsUnauthorized(err):
		return "the target does not accept these credentials: put fresh ones into the Secret"
	case apierrors.IsForbidden(err):
		return "on the target, bind the ClusterRole scute-move-target of the chart to the identity in the kubeconfig"
	default:
		return "check the address in the kubeconfig, and that the target can be reached from where scuted runs"
	}
}

// checkStatus: what it takes to carry status where that was asked for.
func (t *Transfer) checkStatus(ctx context.Context, spec mover.Spec, f *findings) error {
	field := t.field("spec.carryStatus", "--carry-status")
	for _, kind := range spec.CarryStatus {
		onto, ok := t.onto[kind]
		if !ok {
			f.fail(field, fmt.Sprintf("the target serves no kind %q that moves", kind), "write it as Kind.group, for example DevMachine.infrastructure.cluster.x-k8s.io")
			continue
		}
		allowed, err := t.target.May(ctx, "patch", onto, "status", spec.Namespace)
		if err != nil {
			return err
		}
		if !allowed {
			f.fail(field, "on the target scute may not patch the status of "+kind, "grant patch on "+onto.Plural+"/status there")
		}
	}
	return nil
}

func (t *Transfer) checkKinds(members mover.Members, f *findings) {
	asked := make(map[string]bool)
	for _, m := range members.Objects {
		kind := m.Ref.GroupKind()
		if asked[kind] {
			continue
		}
		asked[kind] = true
		onto, ok := t.onto[kind]
		switch {
		case !ok:
			f.fail("target: "+kind, "the target does not serve this kind", "install the provider that brings it, in the source's version or a newer one")
		case !slices.Contains(onto.Versions, m.Version):
			f.fail("target: "+kind, fmt.Sprintf("the source keeps it in version %s; the target serves only %v", m.Version, onto.Versions),
				"bring the provider on the target to the source's version")
		case len(t.types[kind].Contracts) > 0 && len(onto.Contracts) > 0 && slices.Max(onto.Contracts) < slices.Max(t.types[kind].Contracts):
			f.fail("target: "+kind, fmt.Sprintf("the source's provider speaks contract %v, the target's %v", t.types[kind].Contracts, onto.Contracts),
				"bring the provider on the target to the source's version")
		}
	}
}

// checkProviders compares the versions of the providers, as far as both sides record them.
func (t *Transfer) checkProviders(ctx context.Context, f *findings) error {
	var want, have map[string]string
	both, asking := errgroup.WithContext(ctx)
	both.Go(func() (err error) { have, err = inventory(asking, t.target); return err })
	both.Go(func() (err error) { want, err = t.providers(asking); return err })
	err := both.Wait()
	if apierrors.IsForbidden(err) {
		f.warn(providersField, "the versions of the providers could not be compared: "+err.Error(), grantProviders())
		return nil
	}
	if err == nil {
		t.compareProviders(want, have, f)
	}
	return err
}

const providersField = "target: providers"

// grantProviders is how a side lets the versions of its providers be read.
func grantProviders() string {
	return "grant list on " + kube.Inventory().Resource().GroupResource().String() + " and on the kinds of operator.cluster.x-k8s.io, as the chart's roles do"
}

// providers are the versions of the source's.
func (t *Transfer) providers(ctx context.Context) (map[string]string, error) {
	if t.archive != nil {
		return t.archive.Index.Providers, nil
	}
	return inventory(ctx, t.Source)
}

// sourceID identifies the source.
func (t *Transfer) sourceID(ctx context.Context) (string, error) {
	if t.archive != nil {
		return t.archive.Index.Source.Cluster, nil
	}
	return t.Source.NamespaceUID(ctx, metav1.NamespaceSystem)
}

// inventory is the version of each provider of a side that records it.
func inventory(ctx context.Context, c *kube.Cluster) (map[string]string, error) {
	found := make(map[string]string)
	list, err := c.Providers(ctx)
	for _, p := range list {
		if name := string(p.Type) + " " + p.Name; found[name] == "" && p.Version != "" {
			found[name] = p.Version
		}
	}
	return found, err
}

// compareProviders finds providers that are older on the target. One that the target does not record may be there all the same:
// checkKinds asks for the kinds that it brings.
func (t *Transfer) compareProviders(want, have map[string]string, f *findings) {
	const remedy = "compare them yourself: the target needs the versions of the source, or newer ones"
	side := "the source"
	if t.archive != nil {
		side = "the backup"
	}
	for _, records := range []struct {
		side     string
		versions map[string]string
	}{{side, want}, {"the target", have}} {
		if len(records.versions) == 0 {
			f.warn(providersField, "the versions of the providers were not compared: "+records.side+" has none, neither in clusterctl's inventory nor from Cluster API's operator", remedy)
			return
		}
	}
	var unrecorded []string
	for _, name := range slices.Sorted(maps.Keys(want)) {
		old, errOld := version.ParseSemantic(want[name])
		got, errGot := version.ParseSemantic(have[name])
		switch {
		case have[name] == "":
			unrecorded = append(unrecorded, name+" "+want[name])
		case errOld == nil && errGot == nil && got.LessThan(old):
			f.fail("target: "+name, "the target has "+have[name]+", "+side+" "+want[name], "upgrade it with clusterctl upgrade")
		}
	}
	if len(unrecorded) > 0 {
		f.warn(providersField, "the versions of these providers of "+side+" were not compared, because the target does not record them: "+strings.Join(unrecorded, ", "), remedy)
	}
}

// tryAll creates every object on the target in a dry run that the target may refuse. missing and doubtful are of checkNamespaces.
func (t *Transfer) tryAll(ctx context.Context, tr *trials, members mover.Members, allowed permissions, missing, doubtful map[string]bool, f *findings) error {
	var possible []mover.Member
	for _, m := range members.Objects {
		onto, served := t.onto[m.Ref.GroupKind()]
		if missing[m.Ref.Namespace] || !allowed.may("create", m.Ref) || !served || !slices.Contains(onto.Versions, m.Version) {
			continue // said there, or by checkKinds
		}
		possible = append(possible, m)
	}
	tried, byAdmission, err := t.creations(ctx, tr, possible, doubtful, allowed)
	if err != nil {
		return err
	}
	want := make([]mover.Item, len(tried))
	for i, m := range tried {
		want[i] = mover.ItemOf(m, "")
	}
	return originals(ctx, t, want, func(ctx context.Context, i int, source *unstructured.Unstructured) (struct{}, error) {
		if source == nil {
			return struct{}{}, nil // it went away meanwhile; the pause will show what there is
		}
		copied, err := t.trialOf(tried[i], source)
		onto := t.onto[tried[i].Ref.GroupKind()].At(tried[i].Version)
		if err != nil || !byAdmission[i] && tr.creatable(ctx, onto, copied) {
			return struct{}{}, err
		}
		return struct{}{}, t.try(ctx, tried[i], onto, copied, f)
	}, func([]struct{}) error { return nil })
}

// checkNamespaces finds the namespaces that the target does not have, and those in which any object may be refused, because they
// are being deleted or have a quota.
func (t *Transfer) checkNamespaces(ctx context.Context, members mover.Members, f *findings) (missing, doubtful map[string]bool, err error) {
	missing, doubtful = make(map[string]bool), make(map[string]bool)
	for _, m := range members.Objects {
		namespace := m.Ref.Namespace
		if _, known := missing[namespace]; namespace == "" || known {
			continue
		}
		have, err := t.target.Get(ctx, kube.Namespaces(), "", namespace)
		if err != nil && !apierrors.IsNotFound(err) {
			return nil, nil, err
		}
		if missing[namespace] = err != nil; !missing[namespace] {
			limited, err := t.limited(ctx, namespace)
			if err != nil {
				return nil, nil, err
			}
			doubtful[namespace] = limited || have.GetDeletionTimestamp() != nil
			continue
		}
		allowed, err := t.target.May(ctx, "create", kube.Namespaces(), "", "")
		switch {
		case err != nil:
			return nil, nil, err
		case !allowed:
			f.fail("target: namespace "+namespace, "it does not exist and scute may not create namespaces there", "create the namespace on the target, or grant create on namespaces")
		default:
			f.warn("target: namespace "+namespace, "it does not exist, so no object could be tried in it; "+t.field("the move", "the restore")+" will create it", "create it first to have every object tried")
		}
	}
	return missing, doubtful, nil
}

// limited says whether a namespace of the target has a quota, also where that may not be read.
func (t *Transfer) limited(ctx context.Context, namespace string) (limited bool, err error) {
	err = t.target.ListMetadata(ctx, kube.Quotas(), namespace, func(*unstructured.Unstructured) error {
		limited = true
		return nil
	})
	if apierrors.IsForbidden(err) {
		return true, nil
	}
	return limited, err
}

// trialOf is the copy of an object as it is tried.
func (t *Transfer) trialOf(m mover.Member, source *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	uids := make(map[object.Ref]types.UID)
	for _, o := range m.Within {
		uids[o.Ref] = "00000000-0000-0000-0000-000000000000" // nothing is stored: the owner need not be there
	}
	copied, err := mover.Rewrite(source, mover.ItemOf(m, ""), t.copyMarks(mover.ItemOf(m, ""), false), uids)
	if err == nil && m.Keep == "" {
		pauseCopy(copied)
	}
	return copied, err
}

func (t *Transfer) try(ctx context.Context, m mover.Member, onto kube.Type, copied *unstructured.Unstructured, f *findings) error {
	_, err := t.target.Create(ctx, onto, copied, metav1.DryRunAll)
	switch {
	case err == nil:
	case apierrors.IsAlreadyExists(err):
		return t.checkCollision(ctx, onto, m, copied, f)
	case apierrors.IsForbidden(err), apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsNotFound(err):
		remedy := "make the target accept it (quota, admission, provider version)"
		if strings.Contains(err.Error(), "set finalizers on") { // OwnerReferencesPermissionEnforcement
			remedy = "on the target, apply the ClusterRole scute-move-target of this chart: it grants update on the finalizers of owners"
		}
		f.fail("target: "+m.Ref.String(), "the target would refuse it: "+err.Error(), remedy)
	default:
		return err
	}
	return nil
}

func (t *Transfer) checkCollision(ctx context.Context, onto kube.Type, m mover.Member, copied *unstructured.Unstructured, f *findings) error {
	have, err := t.target.Get(ctx, onto, m.Ref.Namespace, m.Ref.Name)
	if apierrors.IsNotFound(err) {
		return nil
	}
	if err != nil {
		return err
	}
	switch holder := hold.Holder(have); {
	case holder == t.mark() && t.command:
		return nil // an earlier process of this restore made it
	case holder != (hold.Mark{}) && t.command:
		f.fail("target: "+m.Ref.String(), "it is held there by "+holder.Named(), "wait until that is over, then run the command again")
		return nil
	case holder != (hold.Mark{}) && holder != t.mark():
		f.warn("target: "+m.Ref.String(), "it is held there by "+holder.Named(), "nothing: the move waits until that is over")
	}
	if same, why := adoptable(m.Keep != "", m.Ref, copied, have); !same {
		what, remedy := t.collision(why, have)
		f.fail("target: "+m.Ref.String(), "an object of this name is there and is not the same: "+what, remedy)
	}
	return nil
}

// adoptable says whether an object that was on the target before may be used instead of a copy: it is shared by nature
// (a ClusterClass, its templates, an identity: what also stays at the source) or is plain configuration (a Secret that
// an earlier move brought along for another cluster), and has the same content, except for what tools wrote to its
// metadata. A Cluster, a Machine or anything else that represents infrastructure never may.
func adoptable(kept bool, ref object.Ref, want, have *unstructured.Unstructured) (bool, string) {
	if mover.IsRecord(ref) {
		// What it lacks is added.
		return object.Observe(want).Binds == object.Observe(have).Binds, "it is about another Cluster"
	}
	if !kept && ref.Group != "" && !isClass(ref) && !isTemplate(ref) {
		return false, "only ClusterClasses, templates, ConfigMaps and Secrets may be shared with what is there"
	}
	w := want.DeepCopy()
	labels := w.GetLabels()
	maps.DeleteFunc(labels, func(key, _ string) bool {
		domain, _, _ := strings.Cut(key, "/")
		return !strings.HasSuffix(domain, object.CoreGroup)
	})
	// The names and labels of tools differ from side to side. What Cluster API reads does not.
	w.Object["metadata"] = map[string]any{}
	w.SetLabels(labels)
	if field, same := mover.Contains(w, have); !same {
		return false, "field " + field + " differs"
	}
	return true, ""
}

func isTemplate(ref object.Ref) bool {
	const suffix = "Template"
	return len(ref.Kind) > len(suffix) && ref.Kind[len(ref.Kind)-len(suffix):] == suffix
}

// pauseCopy makes a copy of a root look as it will when the source is paused.
func pauseCopy(u *unstructured.Unstructured) {
	ref := object.Observe(u).Ref
	switch {
	case pause.IsCluster(ref):
		_ = unstructured.SetNestedField(u.Object, true, "spec", "paused")
	case pause.IsRoot(ref):
		_ = unstructured.SetNestedField(u.Object, "", "metadata", "annotations", object.PausedAnnotation)
	}
}
