package store

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"
)

// authority returns a certificate with a key of the given number of bits. The key need not be valid, because it is
// never used.
func authority(t *testing.T, bits uint) []byte {
	t.Helper()
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	n := new(big.Int).Lsh(big.NewInt(1), bits-1)
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &rsa.PublicKey{N: n.SetBit(n, 0, 1), E: 65537}, signer)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// TestCostlyAuthority checks that certificates with very large keys are refused. A signature of a key with 400,000 bits
// takes half a minute to verify, without interruption, and the Secret has room for keys that take hours.
func TestCostlyAuthority(t *testing.T) {
	o := S3Options{Endpoint: "https://store.example", Bucket: "backups", AccessKeyID: "key", SecretAccessKey: "secret", CA: authority(t, 4096)}
	if _, err := OpenS3(o); err != nil {
		t.Errorf("OpenS3 with a common CA = %v", err)
	}
	for _, bits := range []uint{16384, 400_000} {
		o.CA = append(authority(t, 4096), authority(t, bits)...)
		var got *Error
		if _, err := OpenS3(o); !errors.As(err, &got) || got.Reason != "InvalidCredentials" || got.Field != FieldCredentials || !strings.HasPrefix(got.Message, "ca.crt: ") || got.Next == "" {
			t.Errorf("OpenS3 with a CA of %d bits = %v, want InvalidCredentials", bits, err)
		}
	}
}
