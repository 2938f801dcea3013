package transfer

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/schema"
	"scute.dev/kube"
	"scute.dev/mover"
)

// trials decides for each object of a preflight whether it is tried on a side. An object that a webhook, a policy or a quota
// may refuse is tried, and so is one of which nothing is known. An API server may also be configured to refuse objects in ways
// that it does not show: of each shape one object is tried.
type trials struct {
	admission *kube.Admission
	seen      map[shape]bool
	schemas   map[string]*schema.Validator // by kind and version
}

// shape is what such a configuration tells objects apart by.
type shape struct {
	operation                        admissionv1.OperationType
	kind, version, namespace, owners string
	finalizers                       bool
}

// newTrials asks a side what the move may do there, and at once what may refuse a write.
func (t *Transfer) newTrials(
	ctx context.Context, c *kube.Cluster, types map[string]kube.Type, members mover.Members, verbs []string, f *findings,
) (tr *trials, allowed permissions, err error) {
	var admission *kube.Admission
	both, asking := errgroup.WithContext(ctx)
	both.Go(func() (err error) {
		allowed, err = t.checkAccess(asking, c, types, members, verbs, f)
		return err
	})
	both.Go(func() (err error) {
		if t.archive == nil { // else no API server accepted its objects as they are: all are tried
			admission, err = c.Admission(asking)
		}
		return err
	})
	if err := both.Wait(); err != nil {
		return nil, allowed, err
	}
	if allowed.unsure { // an authorizer may deny single objects: all are tried
		admission = nil
	}
	return trialsOf(admission), allowed, nil
}

func trialsOf(admission *kube.Admission) *trials {
	return &trials{admission: admission, seen: make(map[shape]bool), schemas: make(map[string]*schema.Validator)}
}

// needs says whether an operation has to be tried on an object.
func (tr *trials) needs(operation admissionv1.OperationType, typ kube.Type, m mover.Member) bool {
	var owners []string
	for _, o := range m.Within {
		owners = append(owners, fmt.Sprint(o.Ref.GroupKind(), o.Controller != nil && *o.Controller, o.BlockOwnerDeletion != nil && *o.BlockOwnerDeletion))
	}
	slices.Sort(owners)
	s := shape{operation, typ.GroupKind(), m.Version, m.Ref.Namespace, strings.Join(owners, " "), m.Finalizers > 0}
	first := !tr.seen[s]
	tr.seen[s] = true
	return first || tr.admission.Concerns(operation, typ)
}

// learn reads the schemas of the kinds that have many objects. The others are tried, which costs less.
func (tr *trials) learn(ctx context.Context, c *kube.Cluster, limit int, objects []kube.Type) error {
	many := make(map[string]int)
	var kinds []kube.Type
	for _, typ := range objects {
		if many[schemaKey(typ)]++; many[schemaKey(typ)] == few+1 {
			kinds = append(kinds, typ)
		}
	}
	type learnt struct {
		key    string
		schema *schema.Validator
	}
	return each(ctx, limit, kinds, func(ctx context.Context, typ kube.Type) (learnt, error) {
		l := learnt{key: schemaKey(typ)}
		definition, err := c.Definition(ctx, typ)
		if err != nil && !apierrors.IsForbidden(err) {
			return l, err
		}
		if definition != nil {
			l.schema, _ = schema.New(definition) // the objects of one that cannot be evaluated here are tried
		}
		return l, nil
	}, func(batch []learnt) error {
		for _, l := range batch {
			tr.schemas[l.key] = l.schema
		}
		return nil
	})
}

func schemaKey(typ kube.Type) string { return typ.GroupKind() + "/" + typ.Versions[0] }

// creatable says that an API server's own validation accepts an object.
func (tr *trials) creatable(ctx context.Context, typ kube.Type, u *unstructured.Unstructured) bool {
	v := tr.schemas[schemaKey(typ)]
	return v != nil && v.Accepts(ctx, u)
}

// releasable says that it accepts an update of the metadata of an object.
func (tr *trials) releasable(ctx context.Context, typ kube.Type, u *unstructured.Unstructured) bool {
	v := tr.schemas[schemaKey(typ)]
	return v != nil && v.AcceptsUpdate(ctx, u)
}

// creations are the members that may be refused on the target: by its admission, or, where byAdmission says that they are not, by its
// validation alone. Of a Secret or a ConfigMap every API server has the same validation, so none is among the latter.
func (t *Transfer) creations(
	ctx context.Context, tr *trials, members []mover.Member, doubtful map[string]bool, allowed permissions,
) (tried []mover.Member, byAdmission []bool, err error) {
	must := make([]bool, len(members))
	var rest []mover.Item
	for i, m := range members {
		must[i] = tr.needs(admissionv1.Create, t.onto[m.Ref.GroupKind()], m) || doubtful[m.Ref.Namespace] || !allowed.may("list", m.Ref)
		if !must[i] {
			rest = append(rest, mover.ItemOf(m, ""))
		}
	}
	there, err := t.present(ctx, t.target, t.onto, rest) // a name that is taken is found by a trial too
	if err != nil {
		return nil, nil, err
	}
	var validated []kube.Type
	for i, m := range members {
		must[i] = must[i] || there[m.Ref] != nil
		typ := t.onto[m.Ref.GroupKind()].At(m.Version)
		if !must[i] && typ.Plain() {
			continue
		}
		tried, byAdmission = append(tried, m), append(byAdmission, must[i])
		if !must[i] {
			validated = append(validated, typ)
		}
	}
	return tried, byAdmission, tr.learn(ctx, t.target, t.workers(), validated)
}
