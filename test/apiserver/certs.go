package apiserver

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

// authority signs the certificates of one API server, its administrator and its webhooks.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// keyPair is a certificate and its private key, PEM encoded.
type keyPair struct {
	cert, key []byte
}

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	crt, err := cert.NewSelfSignedCACert(cert.Config{CommonName: "testbed"}, key)
	if err != nil {
		return nil, fmt.Errorf("making a certificate authority: %w", err)
	}
	return &authority{cert: crt, key: key, pem: encodeCertificate(crt.Raw)}, nil
}

// issue returns a certificate that is valid for a server on 127.0.0.1 and for the subject as a client.
func (a *authority) issue(subject pkix.Name) (keyPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing the certificate of %s: %w", subject.CommonName, err)
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing the certificate of %s: %w", subject.CommonName, err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial,
		Subject:      subject,
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().AddDate(1, 0, 0),
		KeyUsage:     x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		DNSNames:     []string{"localhost", "kubernetes.default.svc"},
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
	}, a.cert, key.Public(), a.key)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing the certificate of %s: %w", subject.CommonName, err)
	}
	encoded, err := keyutil.MarshalPrivateKeyToPEM(key)
	if err != nil {
		return keyPair{}, fmt.Errorf("issuing the certificate of %s: %w", subject.CommonName, err)
	}
	return keyPair{cert: encodeCertificate(der), key: encoded}, nil
}

// write stores the pair in dir as name.crt and name.key.
func (p keyPair) write(dir, name string) error {
	if err := os.WriteFile(filepath.Join(dir, name+".crt"), p.cert, 0o600); err != nil {
		return fmt.Errorf("storing the certificate %s: %w", name, err)
	}
	if err := os.WriteFile(filepath.Join(dir, name+".key"), p.key, 0o600); err != nil {
		return fmt.Errorf("storing the key %s: %w", name, err)
	}
	return nil
}

func encodeCertificate(der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}
