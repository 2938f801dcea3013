package doctor

import (
	"context"
	"fmt"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/connect"
)

// right is a request that a command sends with the user's own permissions.
type right struct{ verb, group, resource, subresource string }

// rights are permissions that share a consequence and a remedy if one is missing.
type rights struct {
	list      []right
	namespace string
	level     Level // level of the result if one is missing
	without   string
	remedy    string
}

// to returns the rights to do something with the resources of a group.
func to(group, resource string, verbs ...string) []right {
	list := make([]right, len(verbs))
	for i, verb := range verbs {
		list[i] = right{verb: verb, group: group, resource: resource}
	}
	return list
}

// needed returns the permissions for all commands of scutectl, by their purpose.
func needed(v *visit) []rights {
	own, daemons := v.cluster.Namespace, v.flags.ScuteNamespace
	scute, capi := v1alpha1.GroupVersion().Group, clusterv1.GroupVersion.Group
	const operator = "ask for the ClusterRole scute-operator, if you are to"
	return []rights{
		{
			to(scute, "moves", "get", "list", "watch"), own, Problem, "you cannot look at moves",
			"ask for the ClusterRole scute-viewer, or scute-operator to make moves too",
		},
		{
			to(scute, "workflowruns", "get", "list", "watch"), own, Problem, "you cannot look at WorkflowRuns",
			"ask for the ClusterRole scute-viewer, or scute-operator to make WorkflowRuns too",
		},
		{
			to(scute, "pauses", "get", "list", "watch"), own, Warning, "you cannot look at Pauses",
			"ask for the ClusterRole scute-viewer, or scute-operator to pause clusters too",
		},
		{to(scute, "pauses", "create", "delete"), own, Warning, "you cannot pause and resume clusters", operator},
		{to(scute, "workflowruns", "create"), own, Warning, "you cannot make WorkflowRuns", operator},
		{to(scute, "moves", "create", "patch"), own, Warning, "you cannot make or abort moves", operator},
		{
			append(to(scute, "surgeremediations", "list", "watch"), to(scute, "repairpolicies", "list")...), own, Warning, "you cannot look at remediations",
			"ask for the ClusterRole scute-viewer, if you are to",
		},
		{to(scute, "surgeremediations", "patch"), own, Warning, "you cannot hold, release or abort a remediation", operator},
		{
			append(to(capi, "clusters", "list"), to(capi, "machines", "list")...), own, Warning, "scutectl get machines cannot show them",
			"ask for the ClusterRole scute-viewer, which lists Cluster API's kinds",
		},
		{to("", "secrets", "create", "patch"), own, Warning, "create move --to-kubeconfig cannot keep the kubeconfig", "use --to-secret, or ask for permission"},
		{
			[]right{{"list", "", "pods", ""}, {"create", "", "pods", "portforward"}},
			daemons, Warning,
			"the log in the daemon's pod is out of reach: no timeline, no log", "ask for permission, or name the log with --nats",
		},
	}
}

func image(p *corev1.Pod) string {
	if len(p.Spec.Containers) == 0 {
		return "no container"
	}
	return p.Spec.Containers[0].Image
}

func permissions(ctx context.Context, v *visit) bool {
	const subject = "permissions"
	who := "you"
	if name := v.cluster.User(ctx); name != "" {
		who = name
	}
	complete := true
	for _, need := range needed(v) {
		var missing []string
		for _, r := range need.list {
			allowed, err := may(ctx, v.cluster, r, need.namespace)
			if err != nil {
				v.report(warning(subject, "see kubectl auth can-i --list", "the API server does not say: %v", v.cluster.Explain(err)))
				return true
			}
			if !allowed {
				missing = append(missing, r.String())
			}
		}
		if len(missing) > 0 {
			complete = false
			v.report(Result{need.level, subject, fmt.Sprintf("%s may not %s in namespace %s: %s", who, strings.Join(missing, ", "), need.namespace, need.without), need.remedy})
		}
	}
	if complete {
		v.report(ok(subject, "%s may do all that scutectl does, in namespaces %s and %s", who, v.cluster.Namespace, v.flags.ScuteNamespace))
	}
	return true
}

func (r right) String() string {
	if r.subresource != "" {
		return r.verb + " " + r.resource + "/" + r.subresource
	}
	return r.verb + " " + r.resource
}

func may(ctx context.Context, c *connect.Cluster, r right, namespace string) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, connect.CallTimeout)
	defer cancel()
	review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Namespace: namespace, Verb: r.verb, Group: r.group, Resource: r.resource, Subresource: r.subresource,
		},
	}}
	err := c.Client.Create(ctx, review)
	return review.Status.Allowed, err
}
