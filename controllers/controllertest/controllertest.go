package controllertest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
)

// Client returns a fake client with a resource of scute and its status subresource.
func Client(t *testing.T, resource client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(resource).WithStatusSubresource(resource).Build()
}

// CaughtUp returns a closed channel: the view has caught up with the log.
func CaughtUp() <-chan struct{} {
	caughtUp := make(chan struct{})
	close(caughtUp)
	return caughtUp
}
