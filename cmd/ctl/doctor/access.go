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

// permission is a request that a command sends with the user's own permissions.
type permission struct{ verb, group, resource, subresource string }

// permissionGroup are permissions that share a consequence and a remedy if one is missing.
type permissionGroup struct {
	list        []permission
	namespace   string
	level       Level // level of the result if one is missing
	consequence string
	remedy      string
}

// permissionsFor returns the rights to do something with the resources of a group.
func permissionsFor(group, resource string, verbs ...string) []permission {
	list := make([]permission, len(verbs))
	for i, verb := range verbs {
		list[i] = permission{verb: verb, group: group, resource: resource}
	}
	return list
}

// requiredPermissions returns the permissions for all commands of scutectl, by their purpose.
func requiredPermissions(v *diagnosis) []permissionGroup {
	own, daemons := v.cluster.Namespace, v.flags.ScuteNamespace
	scute, capi := v1alpha1.GroupVersion().Group, clusterv1.GroupVersion.Group
	const operator = "ask for the ClusterRole scute-operator, if you need this"
	return []permissionGroup{
		{
			permissionsFor(scute, "moves", "get", "list", "watch"), own, Problem, "you cannot view moves",
			"ask for the ClusterRole scute-viewer, or scute-operator to create moves too",
		},
		{
			permissionsFor(scute, "workflowruns", "get", "list", "watch"), own, Problem, "you cannot view WorkflowRuns",
			"ask for the ClusterRole scute-viewer, or scute-operator to create WorkflowRuns too",
		},
		{
			permissionsFor(scute, "pauses", "get", "list", "watch"), own, Warning, "you cannot view Pauses",
			"ask for the ClusterRole scute-viewer, or scute-operator to pause clusters too",
		},
		{permissionsFor(scute, "pauses", "create", "delete"), own, Warning, "you cannot pause and resume clusters", operator},
		{permissionsFor(scute, "workflowruns", "create"), own, Warning, "you cannot create WorkflowRuns", operator},
		{permissionsFor(scute, "moves", "create", "patch"), own, Warning, "you cannot create or abort moves", operator},
		{
			append(permissionsFor(scute, "surgeremediations", "list", "watch"), permissionsFor(scute, "repairpolicies", "list")...), own, Warning, "you cannot view remediations",
			"ask for the ClusterRole scute-viewer, if you need this",
		},
		{permissionsFor(scute, "surgeremediations", "patch"), own, Warning, "you cannot hold, release or abort a remediation", operator},
		{
			append(permissionsFor(capi, "clusters", "list"), permissionsFor(capi, "machines", "list")...), own, Warning, "scutectl get machines cannot show them",
			"ask for the ClusterRole scute-viewer, which lists Cluster API's kinds",
		},
		{permissionsFor("", "secrets", "create", "patch"), own, Warning, "create move --to-kubeconfig cannot store the kubeconfig", "use --to-secret, or ask for permission"},
		{
			[]permission{{"list", "", "pods", ""}, {"create", "", "pods", "portforward"}},
			daemons, Warning,
			"the log in the daemon's pod cannot be reached: no timeline, no log", "ask for permission, or name the log with --nats",
		},
	}
}

func image(p *corev1.Pod) string {
	if len(p.Spec.Containers) == 0 {
		return "no container"
	}
	return p.Spec.Containers[0].Image
}

func permissions(ctx context.Context, v *diagnosis) bool {
	const subject = "permissions"
	who := "you"
	if name := v.cluster.User(ctx); name != "" {
		who = name
	}
	complete := true
	for _, need := range requiredPermissions(v) {
		var missing []string
		for _, r := range need.list {
			allowed, err := isAllowed(ctx, v.cluster, r, need.namespace)
			if err != nil {
				v.report(warning(subject, "run kubectl auth can-i --list", "your permissions could not be checked: %v", v.cluster.Explain(err)))
				return true
			}
			if !allowed {
				missing = append(missing, r.String())
			}
		}
		if len(missing) > 0 {
			complete = false
			v.report(Result{need.level, subject, fmt.Sprintf("%s may not %s in namespace %s: %s", who, strings.Join(missing, ", "), need.namespace, need.consequence), need.remedy})
		}
	}
	if complete {
		v.report(ok(subject, "%s has all permissions that scutectl needs, in namespaces %s and %s", who, v.cluster.Namespace, v.flags.ScuteNamespace))
	}
	return true
}

func (r permission) String() string {
	if r.subresource != "" {
		return r.verb + " " + r.resource + "/" + r.subresource
	}
	return r.verb + " " + r.resource
}

func isAllowed(ctx context.Context, c *connect.Cluster, r permission, namespace string) (bool, error) {
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
