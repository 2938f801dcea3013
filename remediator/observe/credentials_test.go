package observe

import (
	"encoding/asn1"
	"encoding/pem"
	"math/big"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestCostlyKey checks that a huge key of etcd's CA is rejected. Computing with it takes minutes or days and cannot be
// interrupted, and four such clusters would block all others.
func TestCostlyKey(t *testing.T) {
	n := new(big.Int).Lsh(big.NewInt(1), 1<<16)
	der, err := asn1.Marshal(struct {
		Version      int
		N            *big.Int
		E            int
		D, P, Q      *big.Int
		Dp, Dq, Qinv *big.Int
	}{0, n, 65537, n, n, n, n, n, n})
	if err != nil {
		t.Fatal(err)
	}
	ca := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet", Name: "prod-etcd"},
		Data: map[string][]byte{
			"tls.crt": []byte("-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n"),
			"tls.key": pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: der}),
		},
	}
	o := &Observer{live: fake.NewClientBuilder().WithObjects(ca).Build()}
	if _, err := o.etcdTLS(t.Context(), types.NamespacedName{Namespace: "fleet", Name: "prod"}); err == nil || !strings.Contains(err.Error(), "Secret prod-etcd: a key has") {
		t.Errorf("etcdTLS = %.300v", err)
	}
}
