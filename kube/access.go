package kube

import (
	"context"

	authorizationv1 "k8s.io/api/authorization/v1"
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
