package api

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/testbed"
)

// bed is set once by TestMain: starting an API server is what costs.
var bed *testbed.Bed //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) (code int) {
	ctx, cancel := context.WithTimeout(context.Background(), testbed.StartTimeout)
	defer cancel()
	b, err := testbed.Start(ctx, testbed.Options{Sides: []string{"one"}, Bare: true})
	if err != nil {
		fmt.Fprintln(os.Stderr, "api:", err)
		return 1
	}
	bed = b
	defer func() {
		if code != 0 {
			b.Keep()
		}
		if err := b.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, "api: stopping the test bed:", err)
			code = 1
		}
	}()
	return m.Run()
}

func admin() client.Client { return bed.Side("one").Client() }

func deadline(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// serve puts definitions in place and waits until the API server serves by them.
func serve(ctx context.Context, t *testing.T, crds ...*apiextensionsv1.CustomResourceDefinition) {
	t.Helper()
	for _, crd := range crds {
		o := crd.DeepCopy()
		must(t, client.IgnoreAlreadyExists(admin().Create(ctx, o)))
	}
	for _, crd := range crds {
		list := &unstructured.UnstructuredList{}
		list.SetAPIVersion(crd.Spec.Group + "/" + crd.Spec.Versions[0].Name)
		list.SetKind(crd.Spec.Names.ListKind)
		wait(ctx, t, crd.Name+" is served", func() error { return admin().List(ctx, list) })
	}
}

// wait for what is to come without an error.
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
			t.Fatalf("waiting until %s: %v: %v", what, ctx.Err(), err)
		case <-tick.C:
		}
	}
}
