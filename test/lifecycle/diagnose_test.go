package lifecycle

import (
	"encoding/base64"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/diagnose"
)

const (
	password  = "correct-h0rse-battery"
	bootstrap = "abcdef.0123456789abcdef"
)

// leaks returns the secrets that a text contains.
func leaks(text string) []string {
	var found []string
	for _, secret := range []string{password, base64.StdEncoding.EncodeToString([]byte(password)), bootstrap, "PRIVATE KEY", "client-key-data"} {
		if strings.Contains(text, secret) {
			found = append(found, secret)
		}
	}
	return found
}

func TestDiagnose(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	const namespace = "diagnosed"
	admin := blue().Client()
	_, err := blue().CreateCluster(ctx, testbed.Tiny(namespace, "d"))
	harness.Must(t, err)
	harness.Must(t, blue().WaitAvailable(ctx, namespace, "d"))
	create := func(o client.Object) {
		t.Helper()
		o.SetNamespace(namespace)
		harness.Must(t, admin.Create(ctx, o))
	}
	applied := `{"data":{"password":"` + base64.StdEncoding.EncodeToString([]byte(password)) + `"}}`
	create(&corev1.Secret{ObjectMeta: metav1.ObjectMeta{
		Name: "database", Labels: map[string]string{"cluster.x-k8s.io/cluster-name": "d"},
		Annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": applied},
	}, StringData: map[string]string{"password": password}})
	create(&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"app.conf": "user=x\npassword: " + password + "\njoin " + bootstrap}})
	create(&corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "broken"}, Spec: corev1.PodSpec{Containers: []corev1.Container{{
		Name: "main", Image: "registry.example/x", Env: []corev1.EnvVar{{Name: "DB_PASSWORD", Value: password}, {Name: "MODE", Value: "fast"}}, Args: []string{"--password=" + password},
	}}}})
	create(&corev1.Event{
		ObjectMeta: metav1.ObjectMeta{Name: "e.1"}, InvolvedObject: corev1.ObjectReference{Kind: "Pod", Namespace: namespace, Name: "broken"},
		Type: "Warning", Reason: "Failed", Message: "cannot pull with token " + bootstrap, LastTimestamp: metav1.Now(),
	})
	objects := []any{
		map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "database"},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "settings"},
		map[string]any{"apiVersion": "v1", "kind": "Secret", "name": "d-kubeconfig"},
		map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "name": "nobody"},
	}
	failure := &task.Failure{Task: "upgrade", Kind: "Apply", Attempt: 2, Cause: "error", Message: "it did not become ready"}

	t.Run("into a folder", func(t *testing.T) {
		s := &step{
			t: t, kind: &diagnose.Kind{Clusters: clusters()}, namespace: namespace, name: "collect", dir: t.TempDir(), failure: failure,
			with: map[string]any{"namespace": namespace, "objects": objects},
		}
		harness.Must(t, s.run(ctx))
		t.Logf("%s", s.output)
		var out struct {
			Folder string
			Files  int
			Errors int
		}
		harness.Must(t, json.Unmarshal(s.output, &out))
		if out.Folder != filepath.Join(s.dir, "diagnostics", "upgrade") || out.Errors == 0 {
			t.Errorf("output = %+v, want the folder and errors", out)
		}
		var all strings.Builder
		files := 0
		harness.Must(t, filepath.WalkDir(out.Folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			files++
			data, err := os.ReadFile(path)
			if found := leaks(string(data)); len(found) > 0 {
				t.Errorf("%s contains %v", path, found)
			}
			if info, err := d.Info(); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("mode of %s = %v, want 0600", path, info.Mode())
			}
			all.WriteString("== " + strings.TrimPrefix(path, out.Folder) + "\n" + string(data))
			return err
		}))
		if files != out.Files {
			t.Errorf("%d files, but the output counts %d", files, out.Files)
		}
		for _, want := range []string{
			"/failure.json", "it did not become ready", "/objects/diagnosed/Cluster.cluster.x-k8s.io/d.yaml", "/objects/diagnosed/Machine.cluster.x-k8s.io/",
			"/objects/diagnosed/KubeadmControlPlane.controlplane.cluster.x-k8s.io/", "/objects/diagnosed/Pod/broken.yaml", "Failed Pod/broken", "password: (removed), ",
			"name: MODE", "value: fast", "nobody", "/objects/diagnosed/Secret/d-kubeconfig.yaml", "value: (removed), ",
		} {
			if !strings.Contains(all.String(), want) {
				t.Errorf("%q is missing", want)
			}
		}
		if t.Failed() {
			t.Log(all.String()[:min(all.Len(), 20000)])
		}
	})
	t.Run("into a ConfigMap, as the run's ServiceAccount", func(t *testing.T) {
		create(&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "runner"}})
		kind := &diagnose.Kind{Clusters: &access.Clusters{Own: ownConfig(blue())}}
		s := &step{t: t, kind: kind, namespace: namespace, name: "collect", account: "runner", failure: failure, dir: t.TempDir()}
		if err := s.run(ctx); err == nil {
			t.Error("run without a permission = nil, want an error")
		}
		create(&rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "runner"}, Rules: []rbacv1.PolicyRule{
			{APIGroups: []string{"*"}, Resources: []string{"*"}, Verbs: []string{"get", "list"}},
			{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create", "patch"}},
		}})
		create(&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "runner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "runner"},
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "runner", Namespace: namespace}},
		})
		harness.Allowed(ctx, t, admin, "system:serviceaccount:"+namespace+":runner",
			authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Resource: "configmaps"})
		harness.Must(t, s.run(ctx))
		first := string(s.output)
		t.Log(first)
		harness.Must(t, s.run(ctx)) // again, with the same ConfigMap
		var out struct{ ConfigMap string }
		harness.Must(t, json.Unmarshal(s.output, &out))
		if !strings.Contains(first, out.ConfigMap) {
			t.Errorf("first message %s does not name the ConfigMap in %s", first, s.output)
		}
		m := &corev1.ConfigMap{}
		harness.Must(t, admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: strings.TrimPrefix(out.ConfigMap, namespace+"/")}, m))
		size := 0
		for key, value := range m.Data {
			size += len(key) + len(value)
			if found := leaks(value); len(found) > 0 {
				t.Errorf("%s contains %v", key, found)
			}
		}
		if m.Data["objects_diagnosed_Cluster.cluster.x-k8s.io_d.yaml"] == "" {
			t.Error("the Cluster is missing")
		}
		if size > 512<<10 || m.Data["conditions.txt"] == "" && m.Data["failure.json"] == "" {
			t.Errorf("%d bytes in %d files, want at most 512 KiB with the conditions or the failure", size, len(m.Data))
		}
	})
}
