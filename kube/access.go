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

// May asks the API server whether scute's credentials may do something; subresource may be empty.
func (c *Cluster) May(ctx context.Context, verb string, t Type, subresource, namespace string) (allowed bool, err error) {
	if !t.Namespaced {
		namespace = ""
	}
	err = c.Do(ctx, "ask for permission to "+verb+" "+t.Plural, func(ctx context.Context) error {
		review, err := c.access.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{
			Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: verb, Group: t.Group, Resource: t.Plural, Subresource: subresource,
			}},
		}, metav1.CreateOptions{})
		if err == nil {
			allowed = review.Status.Allowed
		}
		return err
	})
	return allowed, err
}

// AggregateLabel is the label of the ClusterRoles whose rules the chart adds to those of the daemon.
const AggregateLabel = "scute.dev/aggregate-to-daemon"

// GrantCommand returns the command that grants the daemon of the chart what a move does with kinds. It needs one kind or more.
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

// Rules are what an API server says, in one answer, that scute's credentials may do in a namespace. The zero value says nothing.
type Rules struct {
	// Complete says that no other authorizer has a say: nothing is denied that they grant, of no single object either.
	Complete bool

	namespace string
	granted   []authorizationv1.ResourceRule
}

// Rules asks for them. They are empty where the API server does not know all that counts, because an authorizer that it
// asks, a webhook for example, cannot say its rules: May has to ask for each verb then.
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

// Grant says that they grant a verb on every object of a kind in a namespace. That they do not is no denial: May has the last
// word. Objects of the whole cluster are not in them, because a Role of the namespace grants nothing there.
func (r Rules) Grant(verb string, t Type, namespace string) bool {
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

// unauthorized is how an API server words what its authorizer denies, in a message and in the JSON that carries it. Quota, webhooks and
// admission policies may answer with the same code and reason, in other words.
var unauthorized = regexp.MustCompile(`User \\?"[^"]*" cannot [a-z]+ (resource|path) \\?"`)

// Unpermitted says that an API server's authorizer denied a request: not its quota, nor a webhook or an admission policy. An
// API server that has just started answers so as long as it has not read its roles.
func Unpermitted(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && unauthorized.MatchString(status.Status().Message)
}
