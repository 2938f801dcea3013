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

// authority is a certificate with a key of so many bits, which need not be a key: nobody computes with it.
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

// TestCostlyAuthority: to check one certificate that an authority of 400,000 bits has signed takes half a minute of a processor, which nothing
// interrupts, and the Secret has room for one that takes hours.
func TestCostlyAuthority(t *testing.T) {
	o := S3Options{Endpoint: "https://store.example", Bucket: "backups", AccessKeyID: "key", SecretAccessKey: "secret", CA: authority(t, 4096)}
	if _, err := OpenS3(o); err != nil {
		t.Errorf("a usual authority: %v", err)
	}
	for _, bits := range []uint{16384, 400_000} {
		o.CA = append(authority(t, 4096), authority(t, bits)...)
		var got *Error
		if _, err := OpenS3(o); !errors.As(err, &got) || got.Reason != "InvalidCredentials" || got.Field != FieldCredentials || !strings.HasPrefix(got.Message, "ca.crt: ") || got.Next == "" {
			t.Errorf("an authority of %d bits: %v", bits, err)
		}
	}
}
