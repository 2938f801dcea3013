package kube

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Admission represents the webhooks and admission policies that may reject a write, judged only by
// their rules. It ignores their selectors, conditions and bindings, and assumes that these match.
// The zero value rejects nothing; nil may reject everything.
type Admission struct {
	rules []admissionv1.RuleWithOperations
}

// Admission reads the webhooks and policies of an API server. It returns nil if reading them is forbidden, or if the API server serves a kind of them
// that is unknown here.
func (c *Cluster) Admission(ctx context.Context) (*Admission, error) {
	served, err := c.servedTypes(ctx)
	if err != nil {
		return nil, err
	}
	a := &Admission{}
	var kinds []Type
	for _, t := range served {
		if t.Group != admissionv1.GroupName || strings.HasSuffix(t.Kind, "Binding") {
			continue
		}
		switch t.Kind {
		case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "ValidatingAdmissionPolicy", "MutatingAdmissionPolicy":
			kinds = append(kinds, t)
		default:
			return nil, nil
		}
	}
	var mu sync.Mutex
	lists, ctx := errgroup.WithContext(ctx)
	for _, t := range kinds {
		lists.Go(func() error {
			return c.List(ctx, t, "", func(u *unstructured.Unstructured) error {
				mu.Lock()
				defer mu.Unlock()
				return a.add(u)
			})
		})
	}
	switch err := lists.Wait(); {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, err
	case len(kinds) == 0: // every API server serves some
		return nil, nil
	}
	return a, nil
}

// add adds the rules of a webhook configuration or of a policy.
func (a *Admission) add(u *unstructured.Unstructured) error {
	var o struct {
		Webhooks []struct {
			Rules []admissionv1.RuleWithOperations `json:"rules"`
		} `json:"webhooks"`
		Spec struct {
			MatchConstraints struct {
				ResourceRules []admissionv1.RuleWithOperations `json:"resourceRules"`
			} `json:"matchConstraints"`
		} `json:"spec"`
	}
	raw, err := u.MarshalJSON()
	if err == nil {
		err = json.Unmarshal(raw, &o)
	}
	if err != nil {
		return fmt.Errorf("reading %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	for _, webhook := range o.Webhooks {
		a.rules = append(a.rules, webhook.Rules...)
	}
	a.rules = append(a.rules, o.Spec.MatchConstraints.ResourceRules...)
	return nil
}

// Matches reports whether a webhook or a policy may reject an operation on a kind, in any version.
func (a *Admission) Matches(operation admissionv1.OperationType, t Type) bool {
	if a == nil {
		return true
	}
	return slices.ContainsFunc(a.rules, func(r admissionv1.RuleWithOperations) bool {
		return (slices.Contains(r.Operations, operation) || slices.Contains(r.Operations, admissionv1.OperationAll)) &&
			(slices.Contains(r.APIGroups, t.Group) || slices.Contains(r.APIGroups, "*")) &&
			slices.ContainsFunc(r.Resources, func(resource string) bool {
				name, subresource, _ := strings.Cut(resource, "/")
				return (name == t.Plural || name == "*") && (subresource == "" || subresource == "*")
			})
	})
}
