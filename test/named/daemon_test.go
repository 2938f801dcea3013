package lifecycle

import (
	"context"
	"os"
	"strings"
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
	"scute.dev/test/inmemory"
	"scute.dev/test/scuted"
)

const (
	served  = "served"
	account = "runs"
)

// TestDaemon runs named workflows in the real daemon with a ServiceAccount that has permissions only in its own
// namespace. Templates and kubeconfigs come from that namespace.
func TestDaemon(t *testing.T) {
	ctx := harness.Deadline(t, 20*time.Minute)
	programs, err := scuted.Build(ctx, os.Stderr)
	harness.Must(t, err)
	in, err := scuted.Install(ctx, shared.blue, programs)
	harness.Must(t, err)
	admin, err := in.Client()
	harness.Must(t, err)
	stage(ctx, t)
	dir, err := in.NewLogDir()
	harness.Must(t, err)
	start := func() *scuted.Daemon {
		t.Helper()
		return harness.Daemon(t, in, scuted.DaemonOptions{LogDir: dir, Args: []string{"--run-concurrency", "1"}})
	}
	d := start()
	request := func(t *testing.T, name, params string) {
		t.Helper()
		w, err := scuted.NewWorkflowRun(served, name, account, "workflow:\n  name: "+name+"\n  params:\n"+indent(params))
		harness.Must(t, err)
		harness.Must(t, admin.Create(ctx, w))
	}
	rests := func(t *testing.T, name string) *v1alpha1.WorkflowRun {
		t.Helper()
		w, err := in.WaitWorkflowRun(ctx, served, name, scuted.Rests)
		harness.Must(t, err)
		if w.Status.Phase != v1alpha1.RunSucceeded {
			t.Fatalf("%s: %s: %s\n%s", name, w.Status.Phase, w.Status.Message, scuted.Tasks(w))
		}
		return w
	}
	killWhen := func(t *testing.T, so func(context.Context) bool) {
		t.Helper()
		for !so(ctx) {
			if ctx.Err() != nil {
				t.Fatal(ctx.Err())
			}
			time.Sleep(50 * time.Millisecond)
		}
		harness.Must(t, d.Kill(ctx))
		d = start()
	}
	params := func(name string) string {
		return strings.ReplaceAll(`cluster: {name: NAME, version: v1.36.0, workerReplicas: 1, template: {configMapRef: {name: templates, key: cluster.yaml}}}
upgrade: {version: v1.36.1}
writeConfig: {configMap: NAME-applied}
`, "NAME", name)
	}

	t.Run("a run that waits for its cluster holds no place", func(t *testing.T) {
		create, err := scuted.NewWorkflowRun(served, "held", account, `
workflow:
  name: workload-create
  params:
    cluster: {name: h, version: v1.36.0, template: {configMapRef: {name: templates, key: paused.yaml}}}
`)
		harness.Must(t, err)
		harness.Must(t, admin.Create(ctx, create))
		_, err = in.WaitWorkflowRun(ctx, served, "held", func(w *v1alpha1.WorkflowRun) bool {
			return strings.Contains(w.Status.Message, "waiting for cluster served/h to be initialized")
		})
		harness.Must(t, err)
		beside, err := scuted.NewWorkflowRun(served, "beside", account, `
tasks:
- {name: a, kind: Apply, with: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: beside}}]}}
`)
		harness.Must(t, err)
		harness.Must(t, admin.Create(ctx, beside))
		rests(t, "beside")
		harness.Must(t, shared.blue.SetPaused(ctx, served, "h", false))
		rests(t, "held")
		harness.Must(t, shared.blue.Client().Delete(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "h"}}))
		harness.Must(t, shared.blue.WaitGone(ctx, served, "h"))
	})
	t.Run("workload", func(t *testing.T) {
		request(t, "workload-create", params("w"))
		killWhen(t, exists(shared.blue, served, "w"))
		rests(t, "workload-create")
		harness.Must(t, shared.blue.WaitAvailable(ctx, served, "w"))
		secret := &corev1.Secret{}
		harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: served, Name: "w-access"}, secret))
		if len(secret.Data["value"]) == 0 {
			t.Error("the Secret has no kubeconfig")
		}
		request(t, "workload-upgrade", params("w"))
		killWhen(t, rolls(shared.blue, served, "w", newer))
		rests(t, "workload-upgrade")
		for _, v := range versions(ctx, shared.blue, served, "w") {
			if v != newer {
				t.Errorf("a machine has version %s, want the newer one", v)
			}
		}
		applied := &corev1.ConfigMap{}
		harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: served, Name: "w-applied"}, applied))
		if !strings.Contains(applied.Data["cluster.yaml"], "version: "+newer) {
			t.Errorf("configuration without the newer version:\n%s", applied.Data["cluster.yaml"])
		}
		request(t, "workload-delete", params("w"))
		killWhen(t, goes(shared.blue, served, "w"))
		rests(t, "workload-delete")
		if kinds := left(ctx, t, shared.blue, served); len(kinds) > 0 {
			t.Errorf("objects remain: %v", kinds)
		}
		if err := admin.Get(ctx, client.ObjectKeyFromObject(secret), secret); !apierrors.IsNotFound(err) {
			t.Errorf("Get of the deleted cluster's kubeconfig = %v, want not found", err)
		}
	})
	t.Run("management-create", func(t *testing.T) {
		request(t, "management-create", params("m")+"bootstrap: {cluster: {}}\naccess: {kubeconfigSecretRef: {name: green}}\n")
		killWhen(t, exists(shared.green, served, "m"))
		rests(t, "management-create")
		harness.Must(t, shared.green.WaitAvailable(ctx, served, "m"))
		harness.Must(t, shared.blue.WaitGone(ctx, served, "m"))
	})
	t.Run("management-delete is refused", func(t *testing.T) {
		request(t, "management-delete", params("m")+"bootstrap: {cluster: {}}\n")
		_, err := in.WaitWorkflowRun(ctx, served, "management-delete", func(w *v1alpha1.WorkflowRun) bool {
			return strings.Contains(w.Status.Message, "scutectl run --local")
		})
		harness.Must(t, err)
	})
	// Other tests delete a management cluster for which green is used. It must have no other clusters then.
	harness.Must(t, client.IgnoreNotFound(shared.green.Client().Delete(ctx, &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "m"}})))
	harness.Must(t, shared.green.WaitGone(ctx, served, "m"))
}

// stage creates the namespace on blue with what the runs need: an account, the template, and the kubeconfig of green.
func stage(ctx context.Context, t *testing.T) {
	t.Helper()
	kubeconfig, err := shared.green.Kubeconfig()
	harness.Must(t, err)
	all := []string{"get", "list", "watch", "create", "patch", "update", "delete"}
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: served}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: account}},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: account},
			Rules: []rbacv1.PolicyRule{
				{APIGroups: []string{""}, Resources: []string{"configmaps", "secrets"}, Verbs: all},
				{
					APIGroups: []string{"cluster.x-k8s.io", "controlplane.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "infrastructure.cluster.x-k8s.io"},
					Resources: []string{"*"}, Verbs: all,
				},
				{APIGroups: []string{"scute.dev"}, Resources: []string{"moves"}, Verbs: all},
			},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: account},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: account},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: served, Name: account}},
		},
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "templates"}, Data: map[string]string{
			"cluster.yaml": inmemory.Template, "paused.yaml": strings.Replace(inmemory.Template, "  clusterNetwork:", "  paused: true\n  clusterNetwork:", 1),
		}},
		&corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: served, Name: "green"}, Data: map[string][]byte{"value": kubeconfig}},
	} {
		harness.Must(t, shared.blue.Client().Create(ctx, o))
	}
	harness.Allowed(ctx, t, shared.blue.Client(), "system:serviceaccount:"+served+":"+account,
		authorizationv1.ResourceAttributes{Namespace: served, Verb: "create", Resource: "configmaps"})
}
