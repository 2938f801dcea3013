package transfer

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

type access struct{ kind, namespace, verb string }

// permissions contains the permissions that scute does not have.
type permissions map[access]bool

func (denied permissions) allows(verb string, ref object.Ref) bool {
	return !denied[access{ref.GroupKind(), ref.Namespace, verb}]
}

// permissions returns the permissions that scute lacks for the verbs on the members' kinds in a
// cluster, and a finding for each. One request for the rules of a namespace answers most checks.
func (p *scope) permissions(ctx context.Context, c *kube.Cluster, types map[string]kube.Type, field string, verbs ...string) (permissions, findings, error) {
	asked := make(map[access]bool)
	rules := make(map[string]kube.Rules)
	var questions []access
	for _, m := range p.members.Objects {
		typ, served := types[m.Ref.GroupKind()]
		namespace := m.Ref.Namespace
		if _, known := rules[namespace]; served && !known && namespace != "" {
			var err error
			if rules[namespace], err = c.Rules(ctx, namespace); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				return nil, nil, err
			}
		}
		for _, verb := range verbs {
			q := access{m.Ref.GroupKind(), namespace, verb}
			if !served || asked[q] || m.KeepReason != "" && verb == "delete" {
				continue
			}
			asked[q] = true
			if !rules[namespace].Grants(verb, typ, namespace) {
				questions = append(questions, q)
			}
		}
	}
	denied := make(permissions)
	var found findings
	var mu sync.Mutex
	err := kube.ForEach(ctx, p.workers(), questions, func(ctx context.Context, q access) error {
		granted, err := c.IsAllowed(ctx, q.verb, types[q.kind], "", q.namespace)
		if granted || err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		denied[q] = true
		found.AddError(field, fmt.Sprintf("on the %s scute may not %s %s in namespace %q", c.Name, q.verb, q.kind, q.namespace),
			fmt.Sprintf("grant %s on %s to the identity that scute uses there", q.verb, types[q.kind].Resource().GroupResource()))
		return nil
	})
	return denied, found, err
}

func (p *scope) checkRemoval(ctx context.Context) (findings, error) {
	denied, found, err := p.permissions(ctx, p.Source, p.sourceTypes, "source", "get", "list", "patch", "delete")
	if err != nil {
		return nil, err
	}
	some, err := p.tryRemoval(ctx, denied)
	return append(found, some...), err
}

// tryRemoval releases and deletes in a dry run every object that moves. Otherwise a webhook or a
// policy could stop the move after half of the source's objects are deleted. As in the move, an
// object without finalizers is released only if its deletion is denied.
func (p *scope) tryRemoval(ctx context.Context, denied permissions) (found findings, err error) {
	leaving := slices.DeleteFunc(slices.Clone(p.members.Objects), func(m mover.Member) bool {
		return m.KeepReason != "" || m.Deleting || !denied.allows("patch", m.Ref) || !denied.allows("delete", m.Ref)
	})
	return found, each(ctx, p.workers(), leaving, p.tryRemove, collect(&found))
}

func (p *scope) tryRemove(ctx context.Context, m mover.Member) (found findings, err error) {
	typ, err := p.typeOf(p.Source, m.Ref, m.Version)
	if err != nil {
		return nil, err
	}
	released := m.Finalizers > 0 || pause.IsRoot(m.Ref)
	if released {
		if found, err = p.tryRelease(ctx, typ, m); err != nil || found.HasErrors() {
			return found, err
		}
	}
	if isClass(m.Ref) { // always denied while its Clusters exist
		return found, nil
	}
	denied, err := p.tryDelete(ctx, typ, m)
	found = append(found, denied...)
	if len(denied) == 0 || released || err != nil {
		return found, err
	}
	some, err := p.tryRelease(ctx, typ, m)
	return append(found, some...), err
}

// tryRelease releases an object in a dry run. It returns an error finding if the source refuses
// that, because webhooks that check the annotation find it in the same patch.
func (p *scope) tryRelease(ctx context.Context, typ kube.Type, m mover.Member) (findings, error) {
	why, found, err := dryRunRefusal(release(ctx, p.Source, typ, m.Ref, m.UID, metav1.DryRunAll))
	if why != "" {
		found.AddError(m.Ref.String(), "the source would reject the removal of its finalizers: "+why, "make the source accept it (admission, validation)")
	}
	return found, err
}

// tryDelete deletes an object in a dry run. It returns only a warning if the source refuses that,
// because webhooks may check the annotation, which is not stored yet.
func (p *scope) tryDelete(ctx context.Context, typ kube.Type, m mover.Member) (findings, error) {
	why, found, err := dryRunRefusal(p.Source.TryDelete(ctx, typ, m.Ref.Namespace, m.Ref.Name))
	if why != "" {
		found.AddWarning(m.Ref.String(), "the source rejects its deletion in a dry run: "+why,
			"change the webhook or policy to allow the deletion of objects with the annotation "+object.DeleteForMoveAnnotation+"; otherwise the move "+
				"stops when part of the source is already deleted")
	}
	return found, err
}

// dryRunRefusal returns why the source refused a dry run, or a warning if a webhook that may have
// side effects prevents dry runs. It returns all other errors as err.
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

// denial returns the API server's message if err means that a request was denied or rejected as
// invalid, and "" otherwise.
func denial(err error) string {
	var status apierrors.APIStatus
	if errors.As(err, &status) &&
		(apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || apierrors.IsBadRequest(err) || apierrors.IsMethodNotSupported(err)) {
		return status.Status().Message
	}
	return ""
}
