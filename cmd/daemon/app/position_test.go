package app

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/fake"

	"scute.dev/export/consume"
)

func TestPositionConfigMap(t *testing.T) {
	client := fake.NewClientset().CoreV1().ConfigMaps("scute-system")
	c := &positionConfigMap{client: client, name: "scute-webhook"}
	if p, err := c.Load(t.Context()); err != nil || p != (consume.Position{}) {
		t.Errorf("Load without a ConfigMap = %+v, error %v", p, err)
	}
	for _, want := range []consume.Position{{LogID: "a", Commit: "c"}, {LogID: "a", Sequence: 3, Commit: "c", Since: 2}, {LogID: "a", Sequence: 4}} {
		if err := c.Save(t.Context(), want); err != nil {
			t.Fatal(err)
		}
		if p, err := c.Load(t.Context()); err != nil || p != want {
			t.Errorf("Load = %+v, error %v", p, err)
		}
	}
	if _, err := client.Update(t.Context(), &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "scute-webhook"}, Data: map[string]string{sequenceField: "first"},
	}, metav1.UpdateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Load(t.Context()); err == nil || !strings.Contains(err.Error(), "ConfigMap scute-webhook: sequence must be") {
		t.Error(err)
	}
}
