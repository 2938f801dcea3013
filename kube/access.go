package kube

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// IsAllowed reports whether the API server permits the cluster's credentials to use a verb on a
// kind. subresource may be empty.
func (c *Cluster) IsAllowed(ctx context.Context, verb string, t Type, subresource, namespace string) (allowed bool, err error) {
	err = c.Do(ctx, "ask for permission to "+verb+" "+t.Plural, func(ctx context.Context) error {
		review, err := c.access.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: t.scope(namespace), Verb: verb, Group: t.Group, Resource: t.Plural, Subresource: subresource,
			}},
		}, metav1.CreateOptions{})
		if err == nil {
			allowed = review.Status.Allowed
		}
		return err
	})
	return allowed, err
}

// AggregateLabel is on the ClusterRoles that the chart aggregates into the daemon's ClusterRole.
const AggregateLabel = "scute.dev/aggregate-to-daemon"

// GrantCommand returns the kubectl command that grants the daemon the verbs that a move needs.
// kinds must not be empty.
func GrantCommand(kinds []Type) string {
	resources := make([]string, len(kinds))
	for i, t := range kinds {
		resources[i] = t.Resource().GroupResource().String()
	}
	slices.Sort(resources)
	role := "scute-" + strings.ReplaceAll(resources[0], ".", "-")
	return fmt.Sprintf("kubectl create clusterrole %s --verb=get,list,patch,delete --resource=%s && kubectl label clusterrole %s %s=true",
		role, strings.Join(resources, ","), role, AggregateLabel)
}

// Rules are the permissions of scute's credentials in a namespace. The zero value grants nothing.
type Rules struct {
	// Complete means that every authorizer contributed to the rules. Then no request that they
	// grant is denied, not even for a single object.
	Complete bool

	namespace string
	granted   []authorizationv1.ResourceRule
}

// Rules returns the permissions in a namespace. It returns the zero value if an authorizer, for
// example a webhook, cannot list its rules. The caller must then call IsAllowed for each verb.
func (c *Cluster) Rules(ctx context.Context, namespace string) (rules Rules, err error) {
	err = c.Do(ctx, "ask for all permissions in namespace "+namespace, func(ctx context.Context) error {
		review, err := c.access.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{
			Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: namespace},
		}, metav1.CreateOptions{})
		if err == nil && !review.Status.Incomplete {
			rules = Rules{Complete: true, namespace: namespace, granted: review.Status.ResourceRules}
		}
		return err
	})
	return rules, err
}

// Grants reports whether the rules grant a verb on every object of a kind in a namespace. If it
// returns false, IsAllowed may still allow it. It is always false for cluster-scoped kinds, which
// the rules of a namespace do not cover.
func (r Rules) Grants(verb string, t Type, namespace string) bool {
	if !t.Namespaced || namespace != r.namespace {
		return false
	}
	covers := func(list []string, what string) bool {
		return slices.Contains(list, what) || slices.Contains(list, "*")
	}
	return slices.ContainsFunc(r.granted, func(rule authorizationv1.ResourceRule) bool {
		return len(rule.ResourceNames) == 0 && covers(rule.Verbs, verb) && covers(rule.APIGroups, t.Group) && covers(rule.Resources, t.Plural)
	})
}

// unauthorized matches an authorizer's denial, in a message and in the JSON around it. Quota,
// webhooks and admission policies may use the same code and reason with another text.
var unauthorized = regexp.MustCompile(`User \\?"[^"]*" cannot [a-z]+ (resource|path) \\?"`)

// IsAuthorizationDenied reports whether an authorizer denied a request, and not quota, a webhook or
// an admission policy. An API server that has just started denies requests too, until it has read
// its roles.
func IsAuthorizationDenied(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && unauthorized.MatchString(status.Status().Message)
}
