package local

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestRunsOfTwoFolders runs the same manifest from one folder and then from another, as two people or two jobs of a
// pipeline may do. Both runs are the first of their name. The second run does not treat the first one's objects as its
// own, and its rollback keeps them.
func TestRunsOfTwoFolders(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	programs, err := scuted.Build(ctx, os.Stderr)
	check(t, err)
	side := testbed.StartForTest(t, testbed.Options{Sides: []string{"one"}, Bare: true}).Side("one")
	check(t, side.Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}}))
	made := func() corev1.ConfigMap {
		t.Helper()
		var m corev1.ConfigMap
		check(t, side.Client().Get(ctx, client.ObjectKey{Namespace: fleet, Name: "made"}, &m))
		return m
	}
	const tasks = `  failurePolicy: Rollback
  tasks:
  - {name: make, kind: Apply, with: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: made}, data: {v: "1"}}]}}
  - {name: check, kind: Exec, needs: [make], with: {command: [test, -e, fine]}}
`
	first := &ctl{program: programs.Ctl, kubeconfig: side.KubeconfigPath(), dir: t.TempDir()}
	check(t, os.WriteFile(first.dir+"/fine", nil, 0o600))
	first.run(t, 0, "run", "-f", first.write(t, "deploy", tasks), "--local")
	before := made()

	second := &ctl{program: programs.Ctl, kubeconfig: side.KubeconfigPath(), dir: t.TempDir()}
	_, notes := second.run(t, 1, "run", "-f", second.write(t, "deploy", tasks), "--local")
	contains(t, notes, "RolledBack")
	if after := made(); after.UID != before.UID || after.DeletionTimestamp != nil {
		t.Errorf("the ConfigMap was recreated: UID %s, was %s", after.UID, before.UID)
	}
}
