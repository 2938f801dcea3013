package observe

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/cluster-api/util/secret"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/kube/tenant"
)

// clientValid is how long a client certificate for etcd is valid after its creation, and how long
// before, for members whose clocks are behind. Each dialer creates a certificate and never stores
// it.
const clientValid = time.Hour

// workload returns a client of a workload cluster's API. Its errors never quote the content of the
// kubeconfig's Secret.
func (o *Observer) workload(ctx context.Context, cluster types.NamespacedName) (*tenant.Cluster, error) {
	data, err := o.secret(ctx, cluster, secret.Kubeconfig)
	if err != nil {
		return nil, err
	}
	config, err := kube.ParseKubeconfig(data[secret.KubeconfigDataName])
	if err == nil {
		err = kube.CheckTransportSecurity(config)
	}
	if err != nil {
		return nil, fmt.Errorf("the kubeconfig in Secret %s: %s", secret.Name(cluster.Name, secret.Kubeconfig), shorten(err))
	}
	config.UserAgent = "scute/remediator"
	return o.tenants.Cluster(cluster.String(), config)
}

func (o *Observer) secret(ctx context.Context, cluster types.NamespacedName, purpose secret.Purpose) (map[string][]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, secretTimeout)
	defer cancel()
	name := secret.Name(cluster.Name, purpose)
	s := &corev1.Secret{}
	err := o.live.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, s)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("the Secret %s does not exist", name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	return s.Data, nil
}

// etcdTLS returns a function that returns the TLS configuration for the etcd of a control plane,
// with a client certificate signed by the CA of that etcd. Only the chain of a member's certificate
// is verified, because members are dialed by pod name, which no certificate contains. distrusted is
// called with the error if the verification fails.
func (o *Observer) etcdTLS(ctx context.Context, cluster types.NamespacedName) (func(distrusted func(error)) *tls.Config, error) {
	data, err := o.secret(ctx, cluster, secret.EtcdCA)
	if err != nil {
		return nil, err
	}
	name := secret.Name(cluster.Name, secret.EtcdCA)
	if err := errors.Join(kube.CheckKeySizes(data[secret.TLSCrtDataName]), kube.CheckKeySizes(data[secret.TLSKeyDataName])); err != nil {
		return nil, fmt.Errorf("reading Secret %s: %w", name, err)
	}
	ca, err := certs.DecodeCertPEM(data[secret.TLSCrtDataName])
	if err != nil || ca == nil {
		return nil, fmt.Errorf("reading Secret %s: %s has no readable certificate", name, secret.TLSCrtDataName)
	}
	key, err := certs.DecodePrivateKeyPEM(data[secret.TLSKeyDataName])
	if err != nil || key == nil {
		return nil, fmt.Errorf("reading Secret %s: %s has no readable key, so no client certificate can be signed", name, secret.TLSKeyDataName)
	}
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("creating a key for etcd: %w", err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, fmt.Errorf("creating a certificate for etcd: %w", err)
	}
	now := o.now()
	signed, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "scute.dev"},
		NotBefore: now.Add(-clientValid), NotAfter: now.Add(clientValid),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, ca, own.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("signing a certificate for etcd: Secret %s has no CA with its key", name)
	}
	roots := x509.NewCertPool()
	roots.AddCert(ca)
	return func(distrusted func(error)) *tls.Config {
		return &tls.Config{
			MinVersion:         tls.VersionTLS12,
			Certificates:       []tls.Certificate{{Certificate: [][]byte{signed}, PrivateKey: own}},
			InsecureSkipVerify: true, //nolint:gosec // only the name is not verified: VerifyConnection verifies the chain
			VerifyConnection: func(state tls.ConnectionState) error {
				err := verify(state, roots)
				if err != nil {
					distrusted(err)
				}
				return err
			},
		}
	}, nil
}

func verify(state tls.ConnectionState, roots *x509.CertPool) error {
	if len(state.PeerCertificates) == 0 {
		return errors.New("the member presents no certificate")
	}
	between := x509.NewCertPool()
	for _, c := range state.PeerCertificates[1:] {
		between.AddCert(c)
	}
	_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
	return err
}
