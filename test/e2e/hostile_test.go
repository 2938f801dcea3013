package e2e

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
)

// TestHostileNamespace checks that manifests of one namespace that expand into large objects neither push the daemon
// over the chart's memory limit nor block the runs of another namespace. The test logs the slowdown, which depends on
// the load of the machine.
func TestHostileNamespace(t *testing.T) {
	const (
		limit = 512 << 20 // resources.limits.memory of the chart
		many  = 8         // runs of each kind
		timed = 5         // runs of the other namespace; the shortest counts
	)
	ctx := harness.Deadline(t, 10*time.Minute)
	good, evil := workflowStage(ctx, t, "good"), workflowStage(ctx, t, "evil")
	evil.readsSecrets(ctx, t)
	bombs, policies := evil.bombs(ctx, t), evil.largePolicies()
	server, ca := hostileServer(t)
	slow := evil.slow(ctx, t, server)
	d := harness.Daemon(t, shared.blue, scuted.DaemonOptions{Env: []string{fmt.Sprintf("GOMEMLIMIT=%d", limit*9/10), "SSL_CERT_FILE=" + ca}})

	shortest := func(phase string) time.Duration {
		var took []time.Duration
		for i := range timed {
			name := fmt.Sprintf("%s-%d", phase, i)
			spec := "tasks:\n"
			for step := range 24 {
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
	for i := range policies { // the API server may refuse the largest
		if err := evil.admin.Create(ctx, &policies[i]); err != nil && !apierrors.IsInvalid(err) {
			t.Fatal(err)
		}
	}
	for name, task := range slow {
		for i := range many {
			evil.create(ctx, t, fmt.Sprintf("%s-%d", name, i), "tasks: ["+task+"]")
		}
	}
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
	for name := range slow {
		for i := range many {
			if w := evil.until(ctx, t, fmt.Sprintf("%s-%d", name, i), func(w *v1alpha1.WorkflowRun) bool { return w.Status.Message != "" }); w.Status.Phase == v1alpha1.RunSucceeded {
				t.Errorf("%s succeeded", w.Name)
			}
		}
	}
	most := memory(t, d)
	t.Logf("run time %s alone, %s with the hostile namespace; peak %d MiB", alone.Round(time.Millisecond), beside.Round(time.Millisecond), most>>20)
	if most > limit {
		t.Errorf("the daemon's peak memory is %d MiB, more than the chart's limit", most>>20)
	}
	if beside > 5*alone { // it waited for them; a smaller slowdown may be caused by the machine
		t.Errorf("a run takes %s next to the hostile namespace, and %s without it", beside, alone)
	}
}

// bombs returns tasks whose texts expand into large objects, one for each field that accepts YAML, JSON or a
// kubeconfig.
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

// readsSecrets allows the account of a stage to read the Secrets of its namespace.
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

// hostileServer starts a server that answers slowly, without end or never, or refuses every token. It returns the
// address, and the file with the server's certificate.
func hostileServer(t *testing.T) (address, ca string) {
	t.Helper()
	filler := make([]byte, 64<<10)
	s := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch step := time.Duration(0); {
		case strings.HasPrefix(r.URL.Path, "/never"):
			<-r.Context().Done()
		case strings.HasPrefix(r.URL.Path, "/slow"):
			step = time.Second
			fallthrough
		case strings.HasPrefix(r.URL.Path, "/endless"):
			for {
				if _, err := w.Write(filler); err != nil {
					return
				}
				if step > 0 {
					_ = http.NewResponseController(w).Flush()
					time.Sleep(step)
				}
			}
		default:
			http.Error(w, strings.Repeat("unauthorized ", 10_000), http.StatusUnauthorized)
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(s.CloseClientConnections) // before the server waits for them
	ca = filepath.Join(t.TempDir(), "ca.pem")
	harness.Must(t, os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw}), 0o600))
	return s.URL, ca
}

// slow returns tasks that request a hostile server, as a repository of providers and as a cluster.
func (s *stage) slow(ctx context.Context, t *testing.T, server string) map[string]string {
	t.Helper()
	tasks := make(map[string]string)
	for _, path := range []string{"never", "slow", "endless", "token"} {
		tasks["repository-"+path] = fmt.Sprintf("{name: a, kind: Providers, with: {core: 'cluster-api:v1.14.2', config: {providers: "+
			"[{name: cluster-api, type: CoreProvider, url: '%s/%s/api/v4/projects/a/packages/generic/b/v1.14.2/core.yaml'}]}}}", server, path)
		kubeconfig := fmt.Sprintf("apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: '%s/%s', insecure-skip-tls-verify: true}}]\n"+
			"users: [{name: c, user: {token: %s}}]\ncontexts: [{name: c, context: {cluster: c, user: c}}]\ncurrent-context: c\n", server, path, base64.StdEncoding.EncodeToString(make([]byte, 96<<10)))
		name := "cluster-" + path
		harness.Must(t, shared.blue.Side.Client().Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, StringData: map[string]string{"value": kubeconfig}}))
		tasks[name] = "{name: a, kind: Apply, with: {cluster: {kubeconfigSecretRef: {name: " + name + "}}, manifests: \"apiVersion: v1\\nkind: ConfigMap\\nmetadata: {name: a}\"}}"
	}
	return tasks
}

// largePolicies returns policies of the largest size that the API server accepts.
func (s *stage) largePolicies() []v1alpha1.RepairPolicy {
	large := func(name string, spec v1alpha1.RepairPolicySpec) v1alpha1.RepairPolicy {
		return v1alpha1.RepairPolicy{ObjectMeta: metav1.ObjectMeta{Namespace: s.ns, Name: name}, Spec: spec}
	}
	values, requirements, requests := make([]string, 20_000), make([]metav1.LabelSelectorRequirement, 10_000), make([]string, 10_000)
	for i := range values {
		values[i] = fmt.Sprintf("value-%d", i)
	}
	for i := range requirements {
		requirements[i] = metav1.LabelSelectorRequirement{Key: fmt.Sprintf("key-%d", i), Operator: metav1.LabelSelectorOpDoesNotExist}
		requests[i] = strings.Repeat("z", 100)
	}
	return []v1alpha1.RepairPolicy{
		large("values", v1alpha1.RepairPolicySpec{Selector: metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpIn, Values: values}}}}),
		large("requirements", v1alpha1.RepairPolicySpec{Selector: metav1.LabelSelector{MatchExpressions: requirements}}),
		large("requests", v1alpha1.RepairPolicySpec{PauseRequests: requests}),
	}
}
