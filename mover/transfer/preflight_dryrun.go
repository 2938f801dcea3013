package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/crd"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// access is a verb on a kind in a namespace.
type access struct{ kind, namespace, verb string }

// permissions contains what a side denies to the move.
type permissions struct {
	denied map[access]bool
	// unsure is set if an authorizer may deny single objects of a granted kind, because the API server cannot list the rules of every authorizer.
	unsure bool
}

func (a permissions) allows(verb string, ref object.Ref) bool {
	return !a.denied[access{ref.GroupKind(), ref.Namespace, verb}]
}

// permissions checks each verb on each kind that the move uses. One request for the rules of a namespace answers most of these checks.
func (p *scope) permissions(ctx context.Context, c *kube.Cluster, types map[string]kube.Type, field string, verbs ...string) (allowed permissions, found findings, err error) {
	asked := make(map[access]bool)
	var questions []access
	for _, m := range p.members.Objects {
		_, served := types[m.Ref.GroupKind()]
		for _, verb := range verbs {
			q := access{m.Ref.GroupKind(), m.Ref.Namespace, verb}
			if served && !asked[q] && (m.KeepReason == "" || verb != "delete") {
				asked[q] = true
				questions = append(questions, q)
			}
		}
	}
	allowed.denied = make(map[access]bool)
	rules := make(map[string]kube.Rules)
	for _, q := range questions {
		if _, known := rules[q.namespace]; known || q.namespace == "" {
			continue
		}
		if rules[q.namespace], err = c.Rules(ctx, q.namespace); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return allowed, nil, err
		}
		allowed.unsure = allowed.unsure || !rules[q.namespace].Complete
	}
	questions = slices.DeleteFunc(questions, func(q access) bool { return rules[q.namespace].Grants(q.verb, types[q.kind], q.namespace) })
	denied := make([]bool, len(questions))
	err = kube.ForEach(ctx, p.workers(), indices(questions), func(ctx context.Context, i int) error {
		q := questions[i]
		granted, err := c.IsAllowed(ctx, q.verb, types[q.kind], "", q.namespace)
		denied[i] = !granted
		return err
	})
	for i, q := range questions {
		if allowed.denied[q] = denied[i]; denied[i] && err == nil {
			found.AddError(field, fmt.Sprintf("on the %s scute may not %s %s in namespace %q", c.Name, q.verb, q.kind, q.namespace),
				fmt.Sprintf("grant %s on %s to the identity that scute uses there", q.verb, types[q.kind].Resource().GroupResource()))
		}
	}
	return allowed, found, err
}

// dryRuns decides which objects of a preflight are tried on a side: each object that a webhook, a policy or a quota may refuse, or about which
// nothing is known. An API server may also have configuration that refuses objects and that clients cannot read. Therefore one object of each shape
// is tried too.
type dryRuns struct {
	admission   *kube.Admission
	triedShapes map[shape]bool
	schemas     map[string]*crd.Validator // by kind and version
}

// shape contains the properties by which such configuration can distinguish objects.
type shape struct {
	operation                        admissionv1.OperationType
	kind, version, namespace, owners string
	finalizers                       bool
}

func newDryRuns(admission *kube.Admission) *dryRuns {
	return &dryRuns{admission: admission, triedShapes: make(map[shape]bool), schemas: make(map[string]*crd.Validator)}
}

// dryRuns reads in parallel what the move may do on a side, and which webhooks and policies may refuse a write.
func (p *scope) dryRuns(ctx context.Context, c *kube.Cluster, types map[string]kube.Type, field string, verbs ...string,
) (d *dryRuns, allowed permissions, found findings, err error) {
	var admission *kube.Admission
	both, asking := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		allowed, found, err = p.permissions(asking, c, types, field, verbs...)
		return err
	})
	both.Go(func() (err error) {
		if p.archive == nil { // no API server has accepted the objects of an archive, so all are tried
			admission, err = c.Admission(asking)
		}
		return err
	})
	err = both.Wait()
	if allowed.unsure { // an authorizer may deny single objects, so all are tried
		admission = nil
	}
	return newDryRuns(admission), allowed, found, err
}

// mustTry reports whether an operation must be tried on an object.
func (d *dryRuns) mustTry(operation admissionv1.OperationType, typ kube.Type, m mover.Member) bool {
	var owners []string
	for _, o := range m.MemberOwners {
		owners = append(owners, fmt.Sprint(o.Ref.GroupKind(), o.Controller != nil && *o.Controller, o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion))
	}
	slices.Sort(owners)
	s := shape{operation, typ.GroupKind(), m.Version, m.Ref.Namespace, strings.Join(owners, " "), m.Finalizers > 0}
	first := !d.triedShapes[s]
	d.triedShapes[s] = true
	return first || d.admission.Matches(operation, typ)
}

// readSchemas reads the schemas of kinds with many objects. Objects of other kinds are tried, which is cheaper.
func (d *dryRuns) readSchemas(ctx context.Context, c *kube.Cluster, limit int, objects []kube.Type) error {
	many := make(map[string]int)
	var kinds []kube.Type
	for _, typ := range objects {
		if many[schemaKey(typ)]++; many[schemaKey(typ)] == maxSingleReads+1 {
			kinds = append(kinds, typ)
		}
	}
	schemas := make([]*crd.Validator, len(kinds))
	err := kube.ForEach(ctx, limit, indices(kinds), func(ctx context.Context, i int) error {
		definition, err := c.Definition(ctx, kinds[i])
		if err != nil && !apierrors.IsForbidden(err) {
			return err
		}
		if definition != nil {
			schemas[i], _ = crd.NewValidator(definition) // without a usable schema, the objects are tried
		}
		return nil
	})
	for i, typ := range kinds {
		d.schemas[schemaKey(typ)] = schemas[i]
	}
	return err
}

func schemaKey(typ kube.Type) string { return typ.GroupKind() + "/" + typ.Versions[0] }

// checkRemoval checks whether the move may delete at the source, and whether the source would allow the deletion of each object.
func (p *scope) checkRemoval(ctx context.Context) (findings, error) {
	d, allowed, found, err := p.dryRuns(ctx, p.Source, p.sourceTypes, "source", "get", "list", "patch", "delete")
	if err != nil {
		return nil, err
	}
	some, err := p.tryRemoval(ctx, d, allowed)
	return append(found, some...), err
}

type removal struct {
	mover.Member

	typ kube.Type
	// released is set if the move releases the object before it deletes it.
	released        bool
	release, remove bool
}

// tryRemoval releases and deletes in a dry run every object whose removal the source may refuse. Otherwise, a webhook or a policy could stop the move
// when the source is half empty. An object without finalizers is released only if its deletion is denied, as in the move itself. A release updates
// the whole object, so the source's validation may also refuse it.
func (p *scope) tryRemoval(ctx context.Context, d *dryRuns, allowed permissions) (found findings, err error) {
	var tried, unsure []removal
	var validated []kube.Type
	for _, m := range p.members.Objects {
		if m.KeepReason != "" || m.Deleting || !allowed.allows("patch", m.Ref) || !allowed.allows("delete", m.Ref) {
			continue
		}
		typ, err := p.typeOf(p.Source, m.Ref, m.Version)
		if err != nil {
			return nil, err
		}
		r := removal{Member: m, typ: typ, released: m.Finalizers > 0 || pause.IsRoot(m.Ref)}
		r.release = r.released && d.mustTry(admissionv1.Update, typ, m)
		r.remove = d.mustTry(admissionv1.Delete, typ, m)
		if r.release || r.remove {
			tried = append(tried, r)
		}
		if r.released && !r.release && !typ.IsCore() {
			unsure, validated = append(unsure, r), append(validated, typ)
		}
	}
	if err := d.readSchemas(ctx, p.Source, p.workers(), validated); err != nil {
		return nil, err
	}
	if err := each(ctx, p.workers(), tried, p.tryRemove, collect(&found)); err != nil {
		return nil, err
	}
	want := make([]wanted, len(unsure))
	for i, r := range unsure {
		want[i] = wanted{r.typ, r.Ref}
	}
	err = readEach(ctx, p.Transfer, p.Source, want, func(ctx context.Context, i int, u *unstructured.Unstructured) (findings, error) {
		if u == nil || d.schemas[schemaKey(want[i].typ)].AcceptsUpdate(ctx, u) {
			return nil, nil
		}
		return p.tryRelease(ctx, unsure[i])
	}, collect(&found))
	return found, err
}

func (p *scope) tryRemove(ctx context.Context, r removal) (found findings, err error) {
	if r.release {
		if found, err = p.tryRelease(ctx, r); err != nil || found.HasErrors() {
			return found, err
		}
	}
	// The deletion of a ClusterClass is always denied while its Clusters exist.
	if !r.remove || isClass(r.Ref) {
		return found, nil
	}
	denied, err := p.tryDelete(ctx, r)
	found = append(found, denied...)
	if len(denied) == 0 || r.released || err != nil {
		return found, err
	}
	some, err := p.tryRelease(ctx, r)
	return append(found, some...), err
}

// tryRelease releases an object in a dry run. A refusal is an error, because the patch sets the annotation that webhooks check.
func (p *scope) tryRelease(ctx context.Context, r removal) (findings, error) {
	why, found, err := dryRunRefusal(release(ctx, p.Source, r.typ, r.Ref, r.UID, metav1.DryRunAll))
	if why != "" {
		found.AddError(r.Ref.String(), "the source would reject the removal of its finalizers: "+why, "make the source accept it (admission, validation)")
	}
	return found, err
}

// tryDelete deletes an object in a dry run. A refusal is only a warning, because the annotation that webhooks check is not stored yet.
func (p *scope) tryDelete(ctx context.Context, r removal) (findings, error) {
	why, found, err := dryRunRefusal(p.Source.TryDelete(ctx, r.typ, r.Ref.Namespace, r.Ref.Name))
	if why != "" {
		found.AddWarning(r.Ref.String(), "the source rejects its deletion in a dry run: "+why,
			"change the webhook or policy to allow the deletion of objects with the annotation "+object.DeleteForMoveAnnotation+"; otherwise the move "+
				"stops when part of the source is already deleted")
	}
	return found, err
}

// dryRunRefusal returns why the source refused a dry run. If it refused because a webhook has side effects, refused returns a finding instead.
func dryRunRefusal(answer error) (why string, found findings, err error) {
	switch why := denial(answer); {
	case answer == nil, apierrors.IsNotFound(answer), apierrors.IsConflict(answer):
		return "", nil, nil
	case why == "":
		return "", nil, answer
	case strings.Contains(why, "does not support dry run"):
		found.AddWarning("source", "the deletion of objects could not be checked: "+why, "if that webhook has no side effects, set its sideEffects to None")
		return "", found, nil
	default:
		return why, nil, nil
	}
}

// denial returns the server's message if it denied a request or rejected it as invalid, and "" for any other error.
func denial(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) &&
		(apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)) {
		return status.Status().Message
	}
	return ""
}
