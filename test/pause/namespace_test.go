package pause

import (
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestNamespaceDeleted deletes a namespace in which a run holds a Cluster. The permissions of the run's ServiceAccount
// are deleted first, but the Cluster is still released, so that Cluster API can delete it.
func TestNamespaceDeleted(t *testing.T) {
	ctx := harness.Deadline(t, 6*time.Minute)
	const namespace, account = "going", "runner"
	cluster(ctx, t, namespace, "a")
	harness.Daemon(t, shared.blue, scuted.DaemonOptions{LogDir: folder(t)})
	admin := shared.blue.Side.Client()
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}}
	definitions := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "definitions"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"apiextensions.k8s.io"}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"list"}},
	}}
	for _, o := range []client.Object{
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}, definitions,
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "definitions"}, Subjects: subjects,
			RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: definitions.Name},
		},
	} {
		harness.Must(t, admin.Create(ctx, o))
	}
	harness.Allowed(ctx, t, admin, "system:serviceaccount:"+namespace+":"+account,
		authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "patch", Group: "cluster.x-k8s.io", Resource: "clusters"})
	w, err := scuted.NewWorkflowRun(namespace, "holds", account, "tasks:\n- {name: hold, kind: Pause, with: {clusters: [a]}}\n"+
		"- {name: ask, kind: Approve, needs: [hold], with: {message: 'go on?'}}")
	harness.Must(t, err)
	harness.Must(t, shared.scute.Create(ctx, w))
	_, err = shared.blue.WaitWorkflowRun(ctx, namespace, w.Name, func(w *v1alpha1.WorkflowRun) bool { return w.Status.Phase == v1alpha1.RunPaused })
	harness.Must(t, err)

	want(ctx, t, namespace, "a", true, 2)
	harness.Must(t, admin.Delete(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}))
	harness.Await(ctx, t, "the run is gone", func() string {
		now := &v1alpha1.WorkflowRun{}
		switch err := shared.scute.Get(ctx, client.ObjectKeyFromObject(w), now); {
		case apierrors.IsNotFound(err):
			return ""
		case err != nil:
			return err.Error()
		}
		return string(now.Status.Phase) + ": " + now.Status.Message
	})
	c := &clusterv1.Cluster{}
	err = admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: "a"}, c)
	if harness.Must(t, client.IgnoreNotFound(err)); err == nil { // its deletion takes longer
		want(ctx, t, namespace, "a", false, 0)
	}
}
