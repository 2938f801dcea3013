package lifecycle

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"scute.dev/test/assets"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/move"
)

// startDaemon runs scuted on the blue side.
func startDaemon(ctx context.Context, t *testing.T) {
	t.Helper()
	root, err := assets.Root()
	harness.Must(t, err)
	bin, err := assets.Build(ctx, os.Stderr, assets.Daemon)
	harness.Must(t, err)
	definitions, err := filepath.Glob(filepath.Join(root, "config", "crd", "*_moves.yaml"))
	harness.Must(t, err)
	for _, file := range definitions {
		harness.Must(t, applyFile(ctx, blue().Client(), file))
	}
	harness.Must(t, blue().Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: scuted.Namespace}}))
	in := &scuted.Installation{Side: blue(), Kubeconfig: blue().KubeconfigPath()}
	harness.Daemon(t, in, scuted.DaemonOptions{LogDir: filepath.Join(t.TempDir(), "log"), Program: filepath.Join(bin, "scuted")})
}

// TestMoveByResource tests the task kind with a Move resource, as in the daemon, with the permissions of the run's
// ServiceAccount.
func TestMoveByResource(t *testing.T) {
	ctx := harness.Deadline(t, 8*time.Minute)
	const namespace = "resource"
	admin, green := blue().Client(), bed.Side("green")
	startDaemon(ctx, t)
	_, err := blue().CreateCluster(ctx, testbed.Tiny(namespace, "r"))
	harness.Must(t, err)
	harness.Must(t, blue().WaitAvailable(ctx, namespace, "r"))
	kubeconfig, err := green.Kubeconfig()
	harness.Must(t, err)
	harness.Must(t, admin.Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "green"}, Data: map[string][]byte{"value": kubeconfig}}))
	harness.Must(t, admin.Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner"}}))

	kind := &move.Kind{Clusters: &access.Clusters{Own: ownConfig(blue())}, Resource: true}
	s := &step{t: t, kind: kind, namespace: namespace, name: "pivot", account: "runner", with: map[string]any{
		"clusters": []string{"r"}, "to": map[string]any{"kubeconfigSecretRef": map[string]any{"name": "green"}},
	}}
	if err := s.run(ctx); !task.IsFinal(err) || !strings.Contains(fmt.Sprint(err), "moves.scute.dev") {
		t.Errorf("run without a permission = %v, want a final error", err)
	}
	harness.Must(t, admin.Create(ctx, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner"}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"scute.dev"}, Resources: []string{"moves"}, Verbs: []string{"get", "create", "patch"}},
	}}))
	harness.Must(t, admin.Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "runner"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "runner"},
		Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: "runner", Namespace: namespace}},
	}))

	harness.Allowed(ctx, t, admin, "system:serviceaccount:"+namespace+":runner",
		authorizationv1.ResourceAttributes{Namespace: namespace, Verb: "create", Group: "scute.dev", Resource: "moves"})

	// The attempt is interrupted as soon as the Move exists. The undo rolls it back.
	dying, die := context.WithCancel(ctx)
	s.progress = func(string) { die() }
	if err := s.run(dying); err == nil {
		t.Fatal("the attempt was not interrupted")
	}
	die()
	s.progress = nil
	harness.Must(t, s.undoes(ctx))
	harness.Must(t, blue().WaitAvailable(ctx, namespace, "r"))
	harness.Must(t, s.undoes(ctx))

	// The next attempt creates another Move and is interrupted too. The one after it waits for the same Move.
	dying, die = context.WithCancel(ctx)
	s.progress = func(string) { die() }
	if err := s.run(dying); err == nil {
		t.Fatal("the attempt was not interrupted")
	}
	die()
	s.progress = nil
	harness.Must(t, s.run(ctx))
	t.Logf("%s", s.output)
	var out struct{ Move string }
	harness.Must(t, json.Unmarshal(s.output, &out))
	if !strings.HasPrefix(out.Move, "run-pivot-") || !strings.HasSuffix(out.Move, "-2") {
		t.Errorf("name of the Move = %s, want the second one of the run", out.Move)
	}
	harness.Must(t, green.WaitAvailable(ctx, namespace, "r"))
	harness.Must(t, blue().WaitGone(ctx, namespace, "r"))
	harness.Must(t, s.run(ctx)) // finished already
	if err := s.undoes(ctx); !task.IsFinal(err) {
		t.Errorf("undo of a finished move = %v, want a final error", err)
	}
}
