package kinds

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task/access"
)

// TestAccessOfNamesakes checks runs of one namespace that create clusters with the same name in different namespaces or
// on different management clusters. No run gets the kubeconfig of another one's cluster, and the deletion of one
// cluster keeps the kubeconfig of the other.
func TestAccessOfNamesakes(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "access")
	harness.Must(t, admin().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: ns}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: ns, Name: "runs"}},
	}))
	kubeconfig, err := bed.Side("one").Kubeconfig()
	harness.Must(t, err)
	specs := make(map[string]provider.Cluster)
	for _, name := range []string{"access-a", "access-b"} {
		specs[name] = provider.Cluster{Namespace: namespace(ctx, t, name), Name: "prod"}
		harness.Must(t, admin().Create(ctx, &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "prod-kubeconfig"},
			Data:       map[string][]byte{"value": append([]byte("# "+name+"\n"), kubeconfig...)},
		}))
	}
	harness.Must(t, admin().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "green"}, Data: map[string][]byte{"value": kubeconfig}}))
	remote := access.ClusterRef{KubeconfigSecretRef: &access.SecretKey{Name: "green"}}
	s := &step{t: t, namespace: ns, name: "create", account: "runs"}
	c := provider.NewContext(ctx, s.call(), clusters(false))
	of := func(manager access.ClusterRef, name string) provider.Target {
		return provider.Target{Context: &c, Manager: manager, Cluster: specs[name]}
	}
	var own access.ClusterRef
	for range 2 {
		_, err = of(own, "access-a").StoreKubeconfig(nil, "")
		harness.Must(t, err)
	}
	_, err = of(own, "access-b").StoreKubeconfig(nil, "")
	isFinal(t, err, "it contains the kubeconfig of cluster access-a/prod")
	harness.Must(t, of(own, "access-b").RemoveKubeconfig(""))
	harness.Must(t, of(remote, "access-a").RemoveKubeconfig(""))
	kept := &corev1.Secret{}
	harness.Must(t, admin().Get(ctx, client.ObjectKey{Namespace: ns, Name: "prod-access"}, kept))
	if !strings.HasPrefix(string(kept.Data["value"]), "# access-a") {
		t.Errorf("kubeconfig begins with %.20s, want that of access-a", kept.Data["value"])
	}
	harness.Must(t, of(own, "access-a").RemoveKubeconfig(""))
	if get(ctx, t, "v1", "Secret", ns, "prod-access") != nil {
		t.Error("Forget did not delete the Secret")
	}
}
