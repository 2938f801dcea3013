package doctor

import (
	"context"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"

	"scute.dev/cmd/ctl/reach"
)

// right is something that a command does with the user's own permissions.
type right struct {
	verb, group, resource, subresource string
	namespace                          string
	level                              Level // what its absence means
	without                            string
}

func image(p *corev1.Pod) string {
	if len(p.Spec.Containers) == 0 {
		return "no container"
	}
	return p.Spec.Containers[0].Image
}

func permissions(ctx context.Context, v *visit) bool {
	const subject = "permissions"
	own, scute := v.cluster.Namespace, v.flags.ScuteNamespace
	rights := []right{
		{"get", "scute.dev", "moves", "", own, Problem, "you cannot look at moves"},
		{"list", "scute.dev", "moves", "", own, Problem, "you cannot look at moves"},
		{"watch", "scute.dev", "moves", "", own, Problem, "you cannot follow moves"},
		{"create", "scute.dev", "moves", "", own, Warning, "you cannot make moves"},
		{"patch", "scute.dev", "moves", "", own, Warning, "you cannot abort moves"},
		{"create", "", "secrets", "", own, Warning, "move create --to-kubeconfig cannot store the kubeconfig: use --to-secret"},
		{"patch", "", "secrets", "", own, Warning, "move create --to-kubeconfig cannot tie the kubeconfig to the move"},
		{"list", "", "pods", "", scute, Warning, "scutectl cannot find the daemon, and its log"},
		{"create", "", "pods", "portforward", scute, Warning, "the log in the daemon's pod cannot be reached: no timeline, no log"},
	}
	missing := make(map[string][]string) // by what it means
	worst := make(map[string]Level)
	var order []string
	for _, r := range rights {
		allowed, err := may(ctx, v.cluster, r)
		if err != nil {
			v.report(warning(subject, "see kubectl auth can-i --list", "the API server does not say: %v", v.cluster.Explain(err)))
			return true
		}
		if allowed {
			continue
		}
		if _, there := missing[r.without]; !there {
			order = append(order, r.without)
		}
		missing[r.without] = append(missing[r.without], r.String())
		worst[r.without] = max(worst[r.without], r.level)
	}
	who := "you"
	if name := v.cluster.User(ctx); name != "" {
		who = name
	}
	if len(order) == 0 {
		v.report(ok(subject, "%s may do all that scutectl does, in namespaces %s and %s", who, own, scute))
	}
	for _, without := range order {
		v.report(Result{worst[without], subject, who + " may not " + strings.Join(missing[without], ", ") + ": " + without,
			"ask for the ClusterRole scute-operator (scute-viewer to look only) and, for the log, for pods/portforward in " + scute})
	}
	return true
}

func (r right) String() string {
	s := r.verb + " " + r.resource
	if r.subresource != "" {
		s += "/" + r.subresource
	}
	return s + " in " + r.namespace
}

func may(ctx context.Context, c *reach.Cluster, r right) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, reach.CallTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource,
		},
	}}
	err := c.Client.Create(ctx, review)
	return review.Status.Allowed, err
}
