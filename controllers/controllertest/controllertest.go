package controllertest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/api/v1alpha1"
)

// Client is that of an API server which has a resource of scute, with its status.
func Client(t *testing.T, resource client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(resource).WithStatusSubresource(resource).Build()
}

// CaughtUp is closed: the view holds all that the log held at the start.
func CaughtUp() <-chan struct{} {
	caughtUp := make(chan struct{})
	close(caughtUp)
	return caughtUp
}
