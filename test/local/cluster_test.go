package local

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
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
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

const fleet = "fleet"

// ctl runs scutectl with an administrator's kubeconfig and the daemon's log.
type ctl struct {
	program, kubeconfig, nats, dir string
}

// run runs scutectl, checks its exit status, and returns its output.
func (c *ctl) run(t *testing.T, want int, args ...string) (out, notes string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Dir, cmd.Env = c.dir, append(os.Environ(), "KUBECONFIG="+c.kubeconfig)
	var stdout, stderr strings.Builder
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Run()
	if got := cmd.ProcessState.ExitCode(); got != want {
		t.Fatalf("scutectl %s: exit status %d, want %d (%v)\n%s%s", strings.Join(args, " "), got, want, err, stdout.String(), stderr.String())
	}
	return stdout.String(), stderr.String()
}

func (c *ctl) write(t *testing.T, name, spec string) string {
	t.Helper()
	text := fmt.Sprintf("apiVersion: scute.dev/v1alpha1\nkind: WorkflowRun\nmetadata: {name: %s, namespace: %s}\nspec:\n%s", name, fleet, spec)
	path := filepath.Join(c.dir, name+".yaml")
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// attempts returns the number of attempts of the tasks of a run.
func (c *ctl) attempts(t *testing.T, name string) map[string]int {
	t.Helper()
	out, _ := c.run(t, 0, "get", "run", name, "-n", fleet, "--nats", c.nats, "-o", "json")
	var r struct {
		Tasks []struct {
			Name     string
			Attempts int
		}
	}
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	n := make(map[string]int)
	for _, task := range r.Tasks {
		n[task.Name] = task.Attempts
	}
	return n
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%q is missing in\n%s", part, text)
		}
	}
}

const needsFlag = `  tasks:
  - {name: make, kind: Apply, with: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: NAME}, data: {v: "1"}}]}}
  - {name: check, kind: Wait, needs: [make], totalTimeout: 4s, with: {object: {apiVersion: v1, kind: ConfigMap, name: NAME-flag}, for: {cel: "has(object.data)"}}}
`

// TestRunsInACluster checks that scutectl creates and resumes runs in a cluster, makes decisions about them, and hands
// local runs over to the cluster, with a real API server and daemon.
func TestRunsInACluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute)
	defer cancel()
	programs, err := scuted.Build(ctx, os.Stderr)
	check(t, err)
	side := testbed.StartForTest(t, testbed.Options{Sides: []string{"one"}, Bare: true}).Side("one")
	in, err := scuted.Install(ctx, side, programs)
	check(t, err)
	admin := side.Client()
	stage(ctx, t, admin)
	dir, err := in.NewLogDir()
	check(t, err)
	listen := ports.AddressForTest(t)
	d, err := in.Start(scuted.DaemonOptions{LogDir: dir, Listen: listen})
	check(t, err)
	t.Cleanup(func() { _ = d.Kill(context.Background()) })
	c := &ctl{program: programs.Ctl, kubeconfig: side.KubeconfigPath(), nats: "nats://" + listen, dir: t.TempDir()}
	flag := func(name string) {
		check(t, admin.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: fleet, Name: name + "-flag"}, Data: map[string]string{"x": "y"}}))
	}

	t.Run("made, aborted, resumed, over", func(t *testing.T) {
		file := c.write(t, "again", strings.ReplaceAll(needsFlag, "NAME", "again"))
		out, notes := c.run(t, 1, "run", "-f", file, "--nats", c.nats)
		contains(t, out, "fleet/again make: Succeeded", "fleet/again Aborted")
		contains(t, notes, "run fleet/again created", "scutectl resume run again")
		flag("again")
		_, notes = c.run(t, 0, "run", "-f", file, "--nats", c.nats)
		contains(t, notes, "which was Aborted. Finished tasks are skipped")
		if n := c.attempts(t, "again"); n["make"] != 1 || n["check"] != 2 {
			t.Errorf("attempts = %v, want make=1 and check=2", n)
		}
		_, notes = c.run(t, 2, "run", "-f", file, "--nats", c.nats)
		contains(t, notes, "has ended: it is Succeeded. Delete it (kubectl delete workflowrun again -n fleet)")
		out, _ = c.run(t, 0, "get", "runs", "-n", fleet)
		contains(t, out, "again", "Succeeded", "2/2")
		out, _ = c.run(t, 0, "watch", "run", "again", "-n", fleet)
		contains(t, out, "fleet/again Succeeded")
	})
	t.Run("paused, decided", func(t *testing.T) {
		file := c.write(t, "decided", "  failurePolicy: Pause\n"+strings.ReplaceAll(needsFlag, "NAME", "decided"))
		_, notes := c.run(t, 3, "run", "-f", file, "--nats", c.nats)
		contains(t, notes, "scutectl decide run decided --task check")
		out, _ := c.run(t, 0, "decide", "run", "decided", "-n", fleet, "--nats", c.nats, "--task", "check", "--action", "ignore", "--reason", "known")
		contains(t, out, "ignore of task check decided by user/")
		c.run(t, 4, "watch", "run", "decided", "-n", fleet, "--nats", c.nats)
		out, _ = c.run(t, 0, "describe", "run", "decided", "-n", fleet, "--nats", c.nats)
		contains(t, out, "Degraded", "known; by user/")
	})
	t.Run("refused by the daemon", func(t *testing.T) {
		file := c.write(t, "refused", "  tasks: [{name: a, kind: Exec, with: {command: [\"true\"]}}]\n")
		_, notes := c.run(t, 2, "run", "-f", file, "--nats", c.nats)
		contains(t, notes, "Exec is not enabled here")
	})
}

// stage creates the namespace, and allows its ServiceAccount to work in it.
func stage(ctx context.Context, t *testing.T, admin client.Client) {
	t.Helper()
	for _, o := range []client.Object{
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: fleet, Name: "default"}},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: fleet, Name: "runs"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "admin"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: fleet, Name: "default"}},
		},
		&rbacv1.Role{
			ObjectMeta: metav1.ObjectMeta{Namespace: fleet, Name: "maps"},
			Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
		},
		&rbacv1.RoleBinding{
			ObjectMeta: metav1.ObjectMeta{Namespace: fleet, Name: "maps"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "maps"},
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: fleet, Name: "default"}},
		},
	} {
		check(t, admin.Create(ctx, o))
	}
	harness.Allowed(ctx, t, admin, "system:serviceaccount:"+fleet+":default", authorizationv1.ResourceAttributes{Namespace: fleet, Verb: "patch", Resource: "configmaps"})
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
