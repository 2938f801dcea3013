package kube_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/asn1"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"math/big"
	"strings"
	"testing"

	"scute.dev/kube"
)

// number returns a number with the given number of bits. It need not be one of a valid key, which is never used.
func number(bits int) *big.Int {
	n := new(big.Int).Lsh(big.NewInt(1), uint(bits-1)) //nolint:gosec // positive
	return n.SetBit(n, 0, 1)
}

func encode(kind string, der []byte, err error) []byte {
	if err != nil {
		panic(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

// privateKey returns a private key in the forms of PKCS #1 and PKCS #8.
func privateKey(n, prime *big.Int) (pkcs1, pkcs8 []byte) {
	type pair struct{ P, D, C *big.Int }
	der, err := asn1.Marshal(struct {
		Version               int
		N                     *big.Int
		E                     int
		D, P, Q, Dp, Dq, Qinv *big.Int
		More                  []pair
	}{1, n, 65537, number(64), number(64), number(64), number(64), number(64), number(64), []pair{{prime, number(64), number(64)}}})
	wrapped, err8 := asn1.Marshal(struct {
		Version   int
		Algorithm struct{ ID asn1.ObjectIdentifier }
		Key       []byte
	}{0, struct{ ID asn1.ObjectIdentifier }{asn1.ObjectIdentifier{1, 2, 840, 113549, 1, 1, 1}}, der})
	return encode("RSA PRIVATE KEY", der, err), encode("PRIVATE KEY", wrapped, err8)
}

func certificate(t *testing.T, key any) []byte {
	signer, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key, signer)
	return encode("CERTIFICATE", der, err)
}

// TestAffordable checks that very large keys are rejected. Parsing a private key of 65536 bits, or verifying a
// signature with a key of a million bits, takes minutes of processor time, and a Secret has room for larger ones.
func TestAffordable(t *testing.T) {
	signer, err := ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	ec, err := x509.MarshalECPrivateKey(signer)
	small, small8 := privateKey(number(8192), number(4096))
	large, large8 := privateKey(number(65536), number(64))
	prime, prime8 := privateKey(number(64), number(65536))
	usual := certificate(t, &rsa.PublicKey{N: number(8192), E: 65537})
	for name, c := range map[string]struct {
		data []byte
		says string
	}{
		"none": {nil, ""}, "no pem": {[]byte("CA"), ""}, "ecdsa": {encode("EC PRIVATE KEY", ec, err), ""}, "certificate of ecdsa": {certificate(t, signer.Public()), ""},
		"8192 bits": {small, ""}, "8192 bits, pkcs 8": {small8, ""}, "certificate of 8192 bits": {usual, ""},
		"65536 bits": {large, "a key has 65536 bits: use a key of at most 8192 bits"}, "65536 bits, pkcs 8": {large8, "65536 bits"}, "a prime": {prime, "65536 bits"}, "a prime, pkcs 8": {prime8, "65536 bits"},
		"certificate of 65536 bits": {certificate(t, &rsa.PublicKey{N: number(65536), E: 65537}), "65536 bits"},
		"the second":                {append(usual, certificate(t, &rsa.PublicKey{N: number(65536), E: 65537})...), "65536 bits"},
		"under another name":        {encode("X", derOf(large), nil), "65536 bits"},
		"certificate of a million":  {certificate(t, &rsa.PublicKey{N: number(1 << 20), E: 65537}), "more than 64 KiB"},
		"levels without an end":     {encode("X", []byte(strings.Repeat("\x30\x80", 1000)), nil), ""},
	} {
		if err := kube.CheckKeySizes(c.data); (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: Affordable = %v, want %q", name, err, c.says)
		}
	}
	inKubeconfig := base64.StdEncoding.EncodeToString
	for of, text := range map[string]string{
		`cluster "k"`: strings.Replace(checkPath, "Q0E=", inKubeconfig(certificate(t, &rsa.PublicKey{N: number(65536), E: 65537})), 1),
		`user "u"`:    strings.Replace(checkPath, "{token: s3cr3t-t0ken}", "{client-certificate-data: "+inKubeconfig(usual)+", client-key-data: "+inKubeconfig(large)+"}", 1),
	} {
		if _, err := kube.ParseKubeconfig([]byte(text)); !errors.Is(err, kube.ErrKubeconfig) || !strings.Contains(err.Error(), of+": a key has 65536 bits") {
			t.Errorf("%s: ParseKubeconfig = %v, want ErrKubeconfig about the key", of, err)
		}
	}
}

func derOf(data []byte) []byte {
	block, _ := pem.Decode(data)
	return block.Bytes
}
