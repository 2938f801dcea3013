package controllertest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
	"scute.dev/controllers/resource"
)

// Client returns a fake client with one resource of scute and its status subresource.
func Client(t *testing.T, object client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(object).WithStatusSubresource(object).Build()
}

// Base returns the base of a reconciler.
func Base(c client.Client) resource.Base {
	return resource.Base{Client: c, Live: c, Recorder: events.NewFakeRecorder(9)}
}
