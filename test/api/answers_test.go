package api

import (
	"context"
	"errors"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/kube"
	"scute.dev/test/harness"
)

// TestUnpermitted checks that denials of the authorizer are distinguished from those of an admission policy, which have
// the same status code.
func TestUnpermitted(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	side := bed.Side("one")
	meta := metav1.ObjectMeta{Namespace: "unpermitted", Name: "unpermitted"}
	harness.Must(t, admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: meta.Namespace}}))
	harness.Must(t, admin().Create(ctx, &corev1.ServiceAccount{ObjectMeta: meta}))
	config, _, err := side.ServiceAccountConfig(ctx, meta.Namespace, meta.Name)
	harness.Must(t, err)
	c, err := kube.Connect("source", config)
	harness.Must(t, err)
	maps := kube.Type{Kind: "ConfigMap", Plural: "configmaps", Versions: []string{"v1"}, Namespaced: true}
	try := func() error {
		return c.Do(ctx, "delete", func(ctx context.Context) error {
			return c.Resource(maps, meta.Namespace).Delete(ctx, "it", metav1.DeleteOptions{})
		})
	}
	harness.Must(t, admin().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: "it"}}))
	if err := try(); !kube.IsAuthorizationDenied(err) {
		t.Errorf("Get of a namespaced resource = %v, want Unpermitted", err)
	}
	if _, err := c.Get(ctx, kube.NamespaceType(), "", meta.Namespace); !kube.IsAuthorizationDenied(err) {
		t.Errorf("Get of a cluster-scoped resource = %v, want Unpermitted", err)
	}

	rule := rbacv1.PolicyRule{Verbs: []string{"delete"}, APIGroups: []string{""}, Resources: []string{"configmaps"}}
	harness.Must(t, admin().Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{rule}}))
	harness.Must(t, admin().Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: meta.Namespace, Name: meta.Name}},
	}))
	protect(t, meta.Name, meta.Namespace)
	wait(ctx, t, "the policy denies what the role grants", func() error {
		switch err := try(); {
		case kube.IsAuthorizationDenied(err):
			return err
		case err == nil:
			return errors.Join(errors.New("it was deleted"), admin().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: meta.Namespace, Name: "it"}}))
		case !apierrors.IsForbidden(err):
			t.Fatal(err)
		}
		return nil
	})
}

// TestTryDelete checks that a dry run deletes nothing, whether the object has a finalizer or not, and that admission
// policies still apply.
func TestTryDelete(t *testing.T) {
	ctx := harness.Deadline(t, 2*time.Minute)
	c, err := kube.Connect("source", bed.Side("one").Config())
	harness.Must(t, err)
	maps := kube.Type{Kind: "ConfigMap", Plural: "configmaps", Versions: []string{"v1"}, Namespaced: true}
	harness.Must(t, admin().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "try"}}))
	for _, finalizers := range [][]string{nil, {"scute.dev/test"}} {
		o := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "try", GenerateName: "it-", Finalizers: finalizers}}
		harness.Must(t, admin().Create(ctx, o))
		harness.Must(t, c.TryDelete(ctx, maps, "try", o.Name))
		got, err := c.Get(ctx, maps, "try", o.Name)
		if err != nil || got.GetDeletionTimestamp() != nil {
			t.Errorf("finalizers %v: the object was deleted: %v", finalizers, err)
		}
	}
	if err := c.TryDelete(ctx, kube.NamespaceType(), "", "try"); err != nil {
		t.Error(err)
	}
	harness.Must(t, admin().Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: "try", Name: "protected"}}))
	protect(t, "try", "try")
	wait(ctx, t, "the policy denies", func() error {
		if err := c.TryDelete(ctx, maps, "try", "protected"); !apierrors.IsForbidden(err) {
			return errors.Join(errors.New("it is not denied"), err)
		}
		return nil
	})
}

// protect creates a policy that denies deletions in a namespace.
func protect(t *testing.T, name, namespace string) {
	t.Helper()
	ctx := harness.Deadline(t, time.Minute)
	forbidden := metav1.StatusReasonForbidden
	namespaced := admissionv1.NamespacedScope // a selector of namespaces matches all cluster-scoped objects
	all := admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Delete},
		Rule:       admissionv1.Rule{APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{"*"}, Scope: &namespaced},
	}
	there := &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: namespace}}
	match := admissionv1.MatchResources{NamespaceSelector: there, ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: all}}}
	harness.Policy(ctx, t, admin(), name, match, admissionv1.Validation{Expression: "false", Message: "it is protected", Reason: &forbidden})
}
