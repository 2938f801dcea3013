package testbed

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"fmt"
	"math/big"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	infrav1 "sigs.k8s.io/cluster-api/test/infrastructure/docker/api/v1beta2"
	"sigs.k8s.io/cluster-api/util/certs"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// failureDomains sets the failure domains of a paused cluster, which the in-memory provider keeps but never sets, and
// unpauses the cluster.
func (s *Side) failureDomains(ctx context.Context, c Cluster) error {
	if c.Topology {
		return errors.New("failure domains: not with Topology")
	}
	infra := &infrav1.DevCluster{}
	if err := s.client.Get(ctx, client.ObjectKey{Namespace: c.Namespace, Name: c.Name}, infra); err != nil {
		return fmt.Errorf("reading its DevCluster: %w", err)
	}
	original := infra.DeepCopy()
	for _, name := range c.FailureDomains {
		infra.Status.FailureDomains = append(infra.Status.FailureDomains, clusterv1.FailureDomain{Name: name, ControlPlane: new(true)})
	}
	if err := s.client.Status().Patch(ctx, infra, client.MergeFrom(original)); err != nil {
		return fmt.Errorf("setting its failure domains: %w", err)
	}
	if err := s.SetPaused(ctx, c.Namespace, c.Name, false); err != nil {
		return fmt.Errorf("waking it: %w", err)
	}
	return nil
}

// SetPaused sets or removes the pause of a Cluster, as its user does.
func (s *Side) SetPaused(ctx context.Context, namespace, name string, paused bool) error {
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	return s.client.Patch(ctx, c, client.RawPatch(types.MergePatchType, fmt.Appendf(nil, `{"spec":{"paused":%t}}`, paused)))
}

// externalEtcd creates the Secrets that a user has to provide for an external etcd.
func (s *Side) externalEtcd(ctx context.Context, c Cluster) error {
	if c.Topology {
		return errors.New("external etcd: not with Topology")
	}
	certificate, key, err := authority()
	if err != nil {
		return fmt.Errorf("making the certificates of its external etcd: %w", err)
	}
	for _, name := range []string{"etcd", "apiserver-etcd-client"} {
		secret := &corev1.Secret{
			ObjectMeta: metav1.ObjectMeta{
				Namespace: c.Namespace, Name: c.Name + "-" + name, Labels: map[string]string{clusterv1.ClusterNameLabel: c.Name},
			},
			Type: clusterv1.ClusterSecretType,
			Data: map[string][]byte{corev1.TLSCertKey: certificate, corev1.TLSPrivateKeyKey: key},
		}
		if err := s.client.Create(ctx, secret); err != nil {
			return fmt.Errorf("creating Secret %s: %w", secret.Name, err)
		}
	}
	return nil
}

// authority returns a self-signed CA certificate and its key, both in PEM.
func authority() (certificate, key []byte, err error) {
	private, err := certs.NewPrivateKey()
	if err != nil {
		return nil, nil, err
	}
	now := time.Now()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "external-etcd"},
		NotBefore: now.Add(-time.Minute), NotAfter: now.Add(24 * time.Hour),
		KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	if err != nil {
		return nil, nil, err
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, nil, err
	}
	return certs.EncodeCertPEM(parsed), certs.EncodePrivateKeyPEM(private), nil
}
