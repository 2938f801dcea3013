package kinds

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/workflow/tasks/deletion"
	"scute.dev/workflow/tasks/job"
)

// TestASecretThatLeadsElsewhere replaces the kubeconfig in a Secret with that of another cluster, which has objects
// with the same names. What a task has begun on the first cluster is neither continued nor undone on the other one.
func TestASecretThatLeadsElsewhere(t *testing.T) {
	const elsewhere = "Secret there now has the kubeconfig of another cluster"
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "elsewhere")
	other := bed.Side("two").Client()
	harness.Must(t, other.Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "there"}}
	harness.Must(t, admin().Create(ctx, secret))
	leads := func(to string) {
		t.Helper()
		kubeconfig, err := bed.Side(to).Kubeconfig()
		harness.Must(t, err)
		secret.Data = map[string][]byte{"value": kubeconfig}
		harness.Must(t, admin().Update(ctx, secret))
	}
	steps := map[string]*step{
		"Apply": applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}, "data": {"a": "new"}},
			{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "changed"}, "data": {"a": "new"}}], "force": true`),
		"Delete": {t: t, kind: &deletion.Kind{Clusters: clusters(true)}, namespace: ns, name: "delete", with: `{"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone"}]`},
		"Job":    {t: t, kind: &job.Kind{Clusters: clusters(true)}, namespace: ns, name: "job", with: `{"image": "i"`},
	}
	harness.Must(t, admin().Create(ctx, configMap(ns, "changed", map[string]string{"a": "old"})))
	harness.Must(t, admin().Create(ctx, configMap(ns, "gone", nil)))
	harness.Must(t, other.Create(ctx, configMap(ns, "changed", map[string]string{"a": "theirs"})))
	for kind, s := range steps {
		s.with += `, "cluster": {"kubeconfigSecretRef": {"name": "there"}}}`
		leads("one")
		s.die = true
		if s.run(ctx) == nil {
			t.Fatalf("%s: the attempt did not crash", kind)
		}
		leads("two")
		isFinal(t, s.run(ctx), elsewhere)
		if kind != "Job" { // no controller completes it here
			leads("one")
			harness.Must(t, s.run(ctx))
			leads("two")
		}
		isFinal(t, s.takeBack(ctx), elsewhere)
		leads("one")
		harness.Must(t, s.takeBack(ctx))
	}
	var theirs corev1.ConfigMap
	harness.Must(t, other.Get(ctx, client.ObjectKey{Namespace: ns, Name: "changed"}, &theirs))
	if theirs.Data["a"] != "theirs" {
		t.Errorf("the object on the other cluster was changed: %v", theirs.Data)
	}
	for _, name := range []string{"made", "gone"} {
		if err := other.Get(ctx, client.ObjectKey{Namespace: ns, Name: name}, &theirs); !apierrors.IsNotFound(err) {
			t.Errorf("Get of %s on the other cluster = %v, want not found", name, err)
		}
	}
	if u := getMap(ctx, t, ns, "changed"); u == nil || data(u, "a") != "old" || getMap(ctx, t, ns, "gone") == nil || getMap(ctx, t, ns, "made") != nil {
		t.Error("the objects were not restored by the undo")
	}
}

// TestTheClusterWasMadeAgain checks that a task that runs again may work on the cluster to which the Secret leads by
// then. Objects that it deleted on the first cluster are not created on the second.
func TestTheClusterWasMadeAgain(t *testing.T) {
	ctx := harness.Deadline(t, time.Minute)
	ns := namespace(ctx, t, "made-again")
	harness.Must(t, bed.Side("two").Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: ns}}))
	kubeconfig := func(side string) map[string][]byte {
		data, err := bed.Side(side).Kubeconfig()
		harness.Must(t, err)
		return map[string][]byte{"value": data}
	}
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "there"}, Data: kubeconfig("one")}
	harness.Must(t, admin().Create(ctx, secret))
	s := applyStep(t, ns, `{"manifests": [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "made"}}], "cluster": {"kubeconfigSecretRef": {"name": "there"}}}`)
	harness.Must(t, s.run(ctx))
	d := &step{t: t, kind: &deletion.Kind{Clusters: clusters(true)}, namespace: ns, name: "delete", with: `{"objects": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "gone"}],
		"cluster": {"kubeconfigSecretRef": {"name": "there"}}}`}
	harness.Must(t, admin().Create(ctx, configMap(ns, "gone", nil)))
	harness.Must(t, d.run(ctx))
	secret.Data = kubeconfig("two")
	harness.Must(t, admin().Update(ctx, secret))
	harness.Must(t, s.run(ctx))
	harness.Must(t, bed.Side("two").Client().Get(ctx, client.ObjectKey{Namespace: ns, Name: "made"}, &corev1.ConfigMap{}))
	harness.Must(t, d.run(ctx))
	harness.Must(t, d.takeBack(ctx))
	if err := bed.Side("two").Client().Get(ctx, client.ObjectKey{Namespace: ns, Name: "gone"}, &corev1.ConfigMap{}); !apierrors.IsNotFound(err) {
		t.Errorf("Get of the deleted object on the other cluster = %v, want not found", err)
	}
}
