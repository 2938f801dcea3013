package doctor

import (
	"context"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"scute.dev/kube"
	"scute.dev/view"
)

// providers reports which providers are installed. It reports nothing if the user may not list
// them, because the daemon may still be permitted to.
func providers(ctx context.Context, v *diagnosis) bool {
	const subject = "providers"
	list, err := v.kube.Providers(ctx)
	var names []string
	for _, p := range list {
		names = append(names, strings.TrimSpace(p.Name+" "+p.Version))
	}
	slices.Sort(names)
	switch {
	case apierrors.IsForbidden(err):
	case err != nil:
		v.report(warning(subject, "check the error of the API server: kubectl get providers -A", "%v", err))
	case len(names) == 0:
		v.report(warning(subject, "compare the versions yourself before a move, or install with clusterctl or Cluster API's operator",
			"neither clusterctl's inventory nor Cluster API's operator lists any: a move does not compare versions, and a remediation does not relax preflight checks"))
	default:
		v.report(ok(subject, "%s", strings.Join(slices.Compact(names), ", ")))
	}
	return true
}

// checkGrants reports kinds that a move reads and that the daemon may not list. If the user may not
// check the daemon's permissions, it reports nothing.
func checkGrants(ctx context.Context, v *diagnosis) bool {
	const subject = "kinds"
	if v.account.Name == "" {
		return true
	}
	var unseen []kube.Type
	var names []string
	for _, t := range v.types {
		allowed, err := daemonMay(ctx, v, "list", t)
		if err != nil {
			return true
		}
		if !allowed {
			unseen, names = append(unseen, t), append(names, t.GroupKind())
		}
	}
	if len(unseen) == 0 {
		v.report(ok(subject, "scuted may list all %d", len(v.types)))
		return true
	}
	level := levelProblem
	if v.daemonOutside {
		level = levelWarning // the daemon may have another identity
	}
	v.report(result{
		level, subject, "scuted may not list " + view.Count(len(unseen), "installed kind") + ", so it refuses every move: " + strings.Join(names, ", "),
		"run " + kube.GrantCommand(unseen) + "; or add them to the chart's value `providers`",
	})
	return true
}

func daemonMay(ctx context.Context, v *diagnosis, verb string, t kube.Type) (bool, error) {
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:               "system:serviceaccount:" + v.account.Namespace + ":" + v.account.Name,
		Groups:             []string{"system:authenticated", "system:serviceaccounts", "system:serviceaccounts:" + v.account.Namespace},
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: verb, Group: t.Group, Resource: t.Plural},
	}}
	err := v.cluster.Client.Create(ctx, review)
	return review.Status.Allowed, err
}
