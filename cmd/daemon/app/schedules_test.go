package app

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"scute.dev/backup/schedule"
	stores "scute.dev/backup/store"
	"scute.dev/kube/guard"
)

// TestDestinations checks that the credentials are read from the schedule's own namespace, and that only allowed
// addresses of a store are connected to.
func TestDestinations(t *testing.T) {
	credentials := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "store"}, Data: map[string][]byte{keyAccess: []byte("key"), keySecret: []byte("hush-hush")},
	}
	d := destinations{reader: fake.NewClientBuilder().WithObjects(credentials).Build(), guard: &guard.Guard{}}
	spec := schedule.Spec{Namespace: "fleet", Destination: schedule.Destination{Bucket: "backups", Secret: "store", Insecure: true}}
	for _, endpoint := range []string{"http://127.0.0.1:9", "http://169.254.169.254", "http://10.96.0.1:443", "http://[::ffff:127.0.0.1]:9", "http://[fd00:ec2::254]"} {
		spec.Destination.Endpoint = endpoint
		to, err := d.open(t.Context(), &spec)
		if err != nil {
			t.Fatal(err)
		}
		_, err = to.Get(t.Context(), "x")
		var told *stores.Error
		if !errors.As(err, &told) || told.Reason != "AddressNotAllowed" {
			t.Errorf("%s: Get = %v, want AddressNotAllowed", endpoint, err)
		}
		_ = to.Close()
	}
	other := spec
	other.Namespace = "another"
	if _, err := d.open(t.Context(), &other); err == nil || !strings.Contains(err.Error(), "there is no Secret store in the namespace") {
		t.Errorf("credentials of another namespace: open = %v", err)
	}
	if _, err := d.open(t.Context(), &schedule.Spec{Namespace: "fleet"}); err == nil || !strings.Contains(err.Error(), "no volume") {
		t.Errorf("without a volume: open = %v", err)
	}
}
