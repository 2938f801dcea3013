package api

import (
	"context"
	"os"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// bed is set once by TestMain, because starting an API server is expensive.
var bed *testbed.Bed //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "api", testbed.Options{Sides: []string{"one"}, Bare: true}, func(_ context.Context, b *testbed.Bed) error {
		bed = b
		return nil
	}))
}

func admin() client.Client { return bed.Side("one").Client() }

// serve creates definitions and waits until the API server serves them.
func serve(ctx context.Context, t *testing.T, crds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, crd := range crds {
		o := crd.DeepCopy()
		harness.Must(t, client.IgnoreAlreadyExists(admin().Create(ctx, o)))
	}
	for _, crd := range crds {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
		list.SetKind(crd.Spec.Names.ListKind)
		wait(ctx, t, crd.Name+" is served", func() error { return admin().List(ctx, list) })
	}
}

// wait polls until come returns no error.
func wait(ctx context.Context, t *testing.T, what string, come func() error) {
	t.Helper()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		err := come()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("timed out waiting until %s: %v: %v", what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}
