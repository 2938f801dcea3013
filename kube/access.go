package kube

import (
	"context"
	"errors"
	"regexp"

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

// unauthorized is how an API server words what its authorizer denies, in a message and in the JSON that carries it. Quota, webhooks and
// admission policies may answer with the same code and reason, in other words.
var unauthorized = regexp.MustCompile(`User \\?"[^"]*" cannot [a-z]+ (resource|path) \\?"`)

// Unpermitted says that an API server's authorizer denied a request: not its quota, nor a webhook or an admission policy. An
// API server that has just started answers so as long as it has not read its roles.
func Unpermitted(err error) bool {
	var status apierrors.APIStatus
	return apierrors.IsForbidden(err) && errors.As(err, &status) && unauthorized.MatchString(status.Status().Message)
}
