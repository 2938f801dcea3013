package harness

import (
	"context"
	"errors"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Policy makes a management cluster refuse objects that match and are not valid, until the returned function is called.
// A policy takes effect, and ends, shortly after the write, so callers must poll.
func Policy(ctx context.Context, t testing.TB, admin client.Client, name string, match admissionv1.MatchResources, valid ...admissionv1.Validation) (lift func(context.Context) error) {
	t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicySpec{MatchConstraints: &match, Validations: valid},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       admissionv1.ValidatingAdmissionPolicyBindingSpec{PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny}},
	}
	Must(t, admin.Create(ctx, policy))
	Must(t, admin.Create(ctx, binding))
	return func(ctx context.Context) error {
		return errors.Join(admin.Delete(ctx, binding), admin.Delete(ctx, policy))
	}
}
