package transfer

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/mover"
)

// permissions are what a side says that the move may do there.
type permissions struct {
	denied map[access]bool
	// unsure: an authorizer may deny single objects of a kind that is granted, because the side does not know the rules of all of them.
	unsure bool
}

// may says that a verb on an object's kind is not denied in its namespace.
func (p permissions) may(verb string, ref object.Ref) bool {
	return !p.denied[access{ref.GroupKind(), ref.Namespace, verb}]
}

// checkAccess asks for each verb on each kind that the move works with. One question for all that is granted in a namespace
// answers most of it.
func (t *Transfer) checkAccess(ctx context.Context, c *kube.Cluster, types map[string]kube.Type, members mover.Members, verbs []string, f *findings) (permissions, error) {
	asked := make(map[access]bool)
	var questions []access
	for _, m := range members.Objects {
		_, served := types[m.Ref.GroupKind()]
		for _, verb := range verbs {
			q := access{m.Ref.GroupKind(), m.Ref.Namespace, verb}
			if served && !asked[q] && (m.Keep == "" || verb != "delete") {
				asked[q] = true
				questions = append(questions, q)
			}
		}
	}
	field := "source"
	if c != t.Source {
		field = t.targetField()
	}
	answers := permissions{denied: make(map[access]bool)}
	rules := make(map[string]kube.Rules)
	for _, q := range questions {
		if _, known := rules[q.namespace]; known || q.namespace == "" {
			continue
		}
		var err error
		if rules[q.namespace], err = c.Rules(ctx, q.namespace); err != nil && !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
			return answers, err
		}
		answers.unsure = answers.unsure || !rules[q.namespace].Complete
	}
	questions = slices.DeleteFunc(questions, func(q access) bool { return rules[q.namespace].Grant(q.verb, types[q.kind], q.namespace) })
	type answer struct {
		access
		allowed bool
	}
	err := each(ctx, t.workers(), questions, func(ctx context.Context, q access) (answer, error) {
		allowed, err := c.May(ctx, q.verb, types[q.kind], "", q.namespace)
		return answer{q, allowed}, err
	}, func(batch []answer) error {
		for _, a := range batch {
			if a.allowed {
				continue
			}
			answers.denied[a.access] = true
			f.fail(field, fmt.Sprintf("on the %s scute may not %s %s in namespace %q", c.Name, a.verb, a.kind, a.namespace),
				fmt.Sprintf("grant %s on %s to the identity that scute uses there", a.verb, types[a.kind].Resource().GroupResource()))
		}
		return nil
	})
	return answers, err
}
