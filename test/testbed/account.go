package testbed

import (
	"context"
	"fmt"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"scute.dev/test/apiserver"
)

// tokenSeconds is the lifetime of a ServiceAccount's token. It is longer than any suite.
const tokenSeconds = int64(24 * 60 * 60)

// ServiceAccountConfig returns a client configuration of an existing ServiceAccount, also as a kubeconfig. It has only
// the permissions that RBAC grants the account.
func (s *Side) ServiceAccountConfig(ctx context.Context, namespace, name string) (*rest.Config, []byte, error) {
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	seconds := tokenSeconds
	request := &authenticationv1.TokenRequest{Spec: authenticationv1.TokenRequestSpec{ExpirationSeconds: &seconds}}
	if err := s.client.SubResource("token").Create(ctx, account, request); err != nil {
		return nil, nil, fmt.Errorf("requesting a token for the ServiceAccount %s/%s on %s: %w", namespace, name, s.name, err)
	}
	admin := s.Config()
	config := &rest.Config{
		Host: admin.Host, BearerToken: request.Status.Token, TLSClientConfig: rest.TLSClientConfig{CAData: admin.CAData},
		QPS: admin.QPS,
	}
	kubeconfig, err := apiserver.Kubeconfig(s.name, config)
	if err != nil {
		return nil, nil, err
	}
	return config, kubeconfig, nil
}
