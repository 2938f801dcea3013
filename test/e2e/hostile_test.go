package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestHostileNamespace: what one namespace writes so that it becomes much keeps the daemon within the memory that the chart gives it, and slows the
// runs of another namespace by no more than a quarter.
func TestHostileNamespace(t *testing.T) {
	const (
		limit = 512 << 20 // resources.limits.memory of the chart
		many  = 8         // runs of each kind
		timed = 5         // runs of the other namespace, of which the shortest counts
	)
	ctx := harness.Deadline(t, 10*time.Minute)
	good, evil := workflowStage(ctx, t, "good"), workflowStage(ctx, t, "evil")
	evil.readsSecrets(ctx, t)
	bombs := evil.bombs(ctx, t)
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{Env: []string{fmt.Sprintf("GOMEMLIMIT=%d", limit*9/10)}})

	shortest := func(phase string) time.Duration {
		var took []time.Duration
		for i := range timed {
			name := fmt.Sprintf("%s-%d", phase, i)
			spec := "tasks:\n"
			for step := range 8 {
				needs := ""
				if step > 0 {
					needs = fmt.Sprintf(", needs: [s%d]", step-1)
				}
				spec += apply(fmt.Sprintf("s%d", step), configMap(fmt.Sprintf("%s-%d", name, step), "1"), needs)
			}
			begin := time.Now()
			good.run(ctx, t, name, v1alpha1.RunSucceeded, spec)
			took = append(took, time.Since(begin))
		}
		return slices.Min(took)
	}
	alone := shortest("alone")
	for name, task := range bombs {
		for i := range many {
			evil.create(ctx, t, fmt.Sprintf("%s-%d", name, i), "tasks: ["+task+"]")
		}
	}
	beside := shortest("beside")
	for name := range bombs {
		for i := range many {
			if w := evil.until(ctx, t, fmt.Sprintf("%s-%d", name, i), scuted.Rests); w.Status.Phase == v1alpha1.RunSucceeded {
				t.Errorf("%s succeeded", w.Name)
			}
		}
	}
	most := memory(t, d)
	t.Logf("a run takes %s alone and %s beside; %d MiB", alone.Round(time.Millisecond), beside.Round(time.Millisecond), most>>20)
	if most > limit {
		t.Errorf("the daemon had %d MiB in memory", most>>20)
	}
	if beside > alone*5/4 {
		t.Errorf("a run takes %s beside the hostile namespace, and %s without it", beside, alone)
	}
}

// bombs are tasks whose texts become much, in each field that takes YAML, JSON or a kubeconfig.
func (s *stage) bombs(ctx context.Context, t *testing.T) map[string]string {
	t.Helper()
	const object = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	long := "x: &a " + strings.Repeat("z", 100<<10) + "\ny: [" + strings.Repeat("*a,", 3000) + "]\n"
	lists := "x: &a [" + strings.Repeat("{a: 1},", 1000) + "]\ny: [" + strings.Repeat("*a,", 300) + "]\n"
	values := "x: [" + strings.Repeat("{a},", 240_000) + "]\n"
	kubeconfig := "apiVersion: v1\nkind: Config\nclusters: []\n"
	for name, text := range map[string]string{"long": long, "lists": lists, "values": values} {
		meta := metav1.ObjectMeta{Namespace: s.ns, Name: name}
		harness.Must(t, s.admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: meta, Data: map[string]string{"value": object + text}}))
		harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.Secret{ObjectMeta: meta, StringData: map[string]string{"value": kubeconfig + text}}))
	}
	quoted := func(text string) string {
		raw, err := json.Marshal(text)
		harness.Must(t, err)
		return string(raw)
	}
	tasks := map[string]string{
		"config":      "{name: a, kind: Providers, with: {core: 'cluster-api:v1.14.2', config: {providers: " + quoted("- &a {name: x}\n"+long) + "}}}",
		"certmanager": "{name: a, kind: Providers, with: {core: 'cluster-api:v1.14.2', config: {cert-manager: " + quoted(lists) + "}}}",
	}
	for name, text := range map[string]string{"long": long, "lists": lists, "values": values} {
		tasks["manifests-"+name] = "{name: a, kind: Apply, with: {manifests: " + quoted(object+text) + "}}"
		tasks["configmap-"+name] = "{name: a, kind: Apply, with: {from: {configMapRef: {name: " + name + ", key: value}}}}"
		tasks["kubeconfig-"+name] = "{name: a, kind: Apply, with: {cluster: {kubeconfigSecretRef: {name: " + name + "}}, manifests: " + quoted(object) + "}}"
	}
	return tasks
}

// readsSecrets lets the account of a stage read the Secrets of its namespace.
func (s *stage) readsSecrets(ctx context.Context, t *testing.T) {
	t.Helper()
	meta := metav1.ObjectMeta{Namespace: s.ns, Name: "secrets"}
	all := shared.blue.Side.Client()
	for _, o := range []client.Object{
		&rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: []string{"get"}}}},
		&rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: meta.Name},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: s.ns, Name: s.account}},
		},
	} {
		harness.Must(t, all.Create(ctx, o))
	}
	harness.Allowed(ctx, t, all, s.user(s.account), authorizationv1.ResourceAttributes{Namespace: s.ns, Verb: "get", Resource: "secrets"})
}
