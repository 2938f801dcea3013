package connect

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestDaemon checks that the running pod of the daemon is found whatever names the chart uses, but no pod of a backup
// or in another namespace.
func TestDaemon(t *testing.T) {
	pod := func(namespace, name string, labels map[string]string) *corev1.Pod {
		labels["app.kubernetes.io/name"] = "turtle"
		return &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels},
			Status:     corev1.PodStatus{Phase: corev1.PodRunning},
		}
	}
	daemon := map[string]string{"scute.dev/component": "daemon"}
	c := &Cluster{Client: fake.NewClientBuilder().WithObjects(
		pod("scute-system", "turtle-0", daemon), pod("scute-system", "turtle-backup-1", map[string]string{}), pod("other", "scute-0", daemon),
	).Build()}
	f := New()
	pods, err := f.Daemons(t.Context(), c)
	if err != nil || len(pods) != 1 {
		t.Fatalf("Daemons returned %d pods, error %v", len(pods), err)
	}
	found, err := f.daemon(t.Context(), c)
	if err != nil || found.Name != "turtle-0" {
		t.Fatalf("daemon = %v, error %v", found, err)
	}
	f.ScuteNamespace = "third"
	if _, err := f.daemon(t.Context(), c); err == nil {
		t.Error("daemon found a pod in a namespace without one")
	}
}
