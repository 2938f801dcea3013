package remediation

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	"scute.dev/test/assets"
	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/stack"
	"scute.dev/test/testbed"
)

// suite has what the tests of this package share, because starting a management cluster is expensive.
type suite struct {
	bed  *testbed.Bed
	side *testbed.Side
	// admin does not cache, and knows the kinds of Cluster API and of scute.
	admin client.WithWatch
	// installed installs the chart with the daemon built from this tree. Tests of a single component do not need it.
	installed func() (*scuted.Installation, scuted.Programs, error)
}

// shared is set once by TestMain.
var shared *suite //nolint:gochecknoglobals // a test main has no other way to hand on what it made

// parallel is the number of tests that run at once, whatever the number of processors, because they mostly wait.
const parallel = 6

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "remediation", testbed.Options{Sides: []string{"blue"}}, func(ctx context.Context, bed *testbed.Bed) error {
		shared = &suite{bed: bed, side: bed.Side("blue")}
		shared.installed = once(shared.install)
		return errors.Join(flag.Set("test.parallel", strconv.Itoa(parallel)), shared.prepare(ctx))
	}))
}

// prepare creates the client and scute's CRDs. Tests of a single component need no more of the chart.
func (s *suite) prepare(ctx context.Context) error {
	scheme, err := stack.NewScheme()
	if err != nil {
		return err
	}
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return err
	}
	root, err := assets.Root()
	if err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(root, "config", "crd", "*.yaml"))
	if err != nil || len(files) == 0 {
		return fmt.Errorf("finding scute's CRDs below %s: %w", root, err)
	}
	files = append(files, filepath.Join("testdata", "crds", "metal3remediations.yaml"), filepath.Join("testdata", "crds", "jobs.yaml"))
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		crd := &apiextensionsv1.CustomResourceDefinition{}
		if err := yaml.Unmarshal(content, crd); err != nil {
			return fmt.Errorf("reading %s: %w", file, err)
		}
		if err := s.side.Client().Create(ctx, crd); err != nil && !apierrors.IsAlreadyExists(err) {
			return fmt.Errorf("creating %s: %w", crd.Name, err)
		}
	}
	if s.admin, err = client.NewWithWatch(s.side.Config(), client.Options{Scheme: scheme}); err != nil {
		return err
	}
	for { // until the kinds are served
		err := s.admin.List(ctx, &v1alpha1.RepairPolicyList{})
		if err == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for scute's kinds: %w", errors.Join(ctx.Err(), err))
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// unfit matches what a namespace's name must not contain.
var unfit = regexp.MustCompile(`[^a-z0-9]+`) //nolint:gochecknoglobals // compiled once

// namespaceOf returns the namespace of a test: its name, with invalid characters replaced.
func namespaceOf(t *testing.T) string {
	t.Helper()
	return strings.Trim(unfit.ReplaceAllString(strings.ToLower(t.Name()), "-"), "-")
}

// newCluster creates a cluster in the test's own namespace and waits until it is available. The default name is "c".
// The cluster is deleted in the background when the test ends.
func newCluster(ctx context.Context, t *testing.T, c testbed.Cluster) *cluster {
	t.Helper()
	made := beginCluster(ctx, t, c)
	harness.Must(t, shared.side.WaitAvailable(ctx, made.Namespace, made.Name))
	return made
}

// beginCluster creates a cluster like newCluster, but does not wait for it.
func beginCluster(ctx context.Context, t *testing.T, c testbed.Cluster) *cluster {
	t.Helper()
	if c.Namespace == "" {
		c.Namespace = namespaceOf(t)
	}
	if c.Name == "" {
		c.Name = "c"
	}
	w, err := shared.side.CreateCluster(ctx, c)
	harness.Must(t, err)
	made := &cluster{Workload: w, t: t, spec: c}
	t.Cleanup(made.remove)
	return made
}
