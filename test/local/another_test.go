package local

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestARunStaysOnItsCluster continues a local run that began on one cluster with the kubeconfig of another one. It
// changes nothing there, neither at the start nor if the kubeconfig changes during the run.
func TestARunStaysOnItsCluster(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
	defer cancel()
	programs, err := scuted.Build(ctx, os.Stderr)
	check(t, err)
	bed := testbed.StartForTest(t, testbed.Options{Sides: []string{"one", "two"}, Bare: true})
	for _, name := range []string{"one", "two"} {
		check(t, bed.Side(name).Client().Create(ctx, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: fleet}}))
	}
	c := &ctl{program: programs.Ctl, dir: t.TempDir()}
	c.kubeconfig = filepath.Join(c.dir, "kubeconfig")
	use := func(name string) {
		t.Helper()
		data, err := os.ReadFile(bed.Side(name).KubeconfigPath())
		check(t, err)
		check(t, os.WriteFile(c.kubeconfig, data, 0o600))
	}
	untouched := func() {
		t.Helper()
		for _, name := range []string{"first", "second"} {
			err := bed.Side("two").Client().Get(ctx, client.ObjectKey{Namespace: fleet, Name: name}, &corev1.ConfigMap{})
			if !apierrors.IsNotFound(err) {
				t.Errorf("%s was created on the other cluster: %v", name, err)
			}
		}
	}
	file := c.write(t, "stays", strings.NewReplacer("OTHER", bed.Side("two").KubeconfigPath(), "DIR", c.dir).Replace(`  tasks:
  - {name: first, kind: Apply, with: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: first}}]}}
  - {name: switch, kind: Exec, needs: [first], with: {command: [sh, -c, "test -e DIR/switched || cp OTHER DIR/kubeconfig; touch DIR/switched"]}}
  - {name: second, kind: Apply, needs: [switch], with: {manifests: [{apiVersion: v1, kind: ConfigMap, metadata: {name: second}}]}}
`))
	const refusal = "is another cluster: continue it with the kubeconfig and the context with which it started"
	use("one")
	_, notes := c.run(t, 1, "run", "-f", file, "--local")
	contains(t, notes, refusal)
	untouched()
	for _, args := range [][]string{{"run", "-f", file}, {"resume", "run", "stays", "-n", fleet}} {
		_, notes := c.run(t, 2, append(args, "--local")...)
		contains(t, notes, refusal)
	}
	untouched()
	use("one")
	c.run(t, 0, "run", "-f", file, "--local")
	untouched()
	check(t, bed.Side("one").Client().Get(ctx, client.ObjectKey{Namespace: fleet, Name: "second"}, &corev1.ConfigMap{}))
}
