package kube

import (
	"encoding/asn1"
	"encoding/pem"
	"errors"
	"fmt"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"scute.dev/kube/document"
)

// ErrKubeconfig is wrapped by the error for a kubeconfig that scute does not use.
var ErrKubeconfig = errors.New("kubeconfig not usable")

// maxKubeconfigSize is in bytes. A Secret is not larger.
const maxKubeconfigSize = 1 << 20

// ParseKubeconfig parses an untrusted kubeconfig. Its author must not be able to make scute run a
// command, read a local file, connect through another server, compute for days or run out of
// memory. Therefore it refuses exec plugins, auth providers, paths, proxies, very large keys, more
// than 1 MiB, and documents that package document refuses.
func ParseKubeconfig(data []byte) (*rest.Config, error) {
	if len(data) > maxKubeconfigSize {
		return nil, fmt.Errorf("%w: it has more than %d MiB: leave only one context in it (kubectl config view --minify --flatten)", ErrKubeconfig, maxKubeconfigSize>>20)
	}
	if err := document.CheckBounds(data); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrKubeconfig, err)
	}
	config, err := clientcmd.Load(data)
	if err != nil {
		return nil, fmt.Errorf("%w: it cannot be parsed (the content is not shown)", ErrKubeconfig)
	}
	for name, user := range config.AuthInfos {
		switch {
		case user.Exec != nil || user.AuthProvider != nil:
			return nil, fmt.Errorf("%w: user %q runs a program to log in: use a token or a client certificate", ErrKubeconfig, name)
		case user.TokenFile != "" || user.ClientCertificate != "" || user.ClientKey != "":
			return nil, fmt.Errorf("%w: user %q names a file: embed its content (kubectl config view --flatten)", ErrKubeconfig, name)
		}
		if err := errors.Join(CheckKeySizes(user.ClientCertificateData), CheckKeySizes(user.ClientKeyData)); err != nil {
			return nil, fmt.Errorf("%w: the client certificate of user %q: %w", ErrKubeconfig, name, err)
		}
	}
	for name, cluster := range config.Clusters {
		if cluster.CertificateAuthority != "" {
			return nil, fmt.Errorf("%w: cluster %q names a file: embed its content (kubectl config view --flatten)", ErrKubeconfig, name)
		}
		if err := CheckKeySizes(cluster.CertificateAuthorityData); err != nil {
			return nil, fmt.Errorf("%w: the certificate authority of cluster %q: %w", ErrKubeconfig, name, err)
		}
		if cluster.ProxyURL != "" {
			return nil, fmt.Errorf("%w: cluster %q has a proxy-url: remove it, and connect to the server without a proxy", ErrKubeconfig, name)
		}
	}
	rest, err := clientcmd.NewDefaultClientConfig(*config, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		// The cause may quote a URL with a password.
		return nil, fmt.Errorf("%w: its current context %q has no usable cluster and user", ErrKubeconfig, config.CurrentContext)
	}
	return rest, nil
}

// CheckTransportSecurity fails if an attacker between scute and the API server could read or change
// the traffic. The error names the setting at fault.
func CheckTransportSecurity(config *rest.Config) error {
	u, _, err := rest.DefaultServerUrlFor(config)
	switch {
	case err != nil:
		return fmt.Errorf("%w: its server is not a valid URL", ErrKubeconfig)
	case u.Scheme != "https":
		return fmt.Errorf("%w: its server uses %s, so others can read the traffic: use https", ErrKubeconfig, u.Scheme)
	case config.Insecure:
		return fmt.Errorf("%w: it does not check the server's certificate (insecure-skip-tls-verify), so another server can impersonate it: "+
			"use certificate-authority-data", ErrKubeconfig)
	}
	return nil
}

const (
	// maxKeyBits is the largest RSA key that Go's TLS accepts from a peer. The time of a
	// computation grows with the third power of the bits, and nothing can interrupt it.
	maxKeyBits = 8192
	// maxDER is the largest certificate or key, in bytes.
	maxDER = 64 << 10
	// maxNesting is the depth to which a key is searched. Real keys need a few levels.
	maxNesting = 16
)

// CheckKeySizes fails if untrusted PEM contains a key whose computations take minutes or days. It
// does no computation with the key. It ignores data that is not PEM, which the caller's parser
// rejects.
func CheckKeySizes(data []byte) error {
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if len(block.Bytes) > maxDER {
			return fmt.Errorf("a certificate or key has more than %d KiB", maxDER>>10)
		}
		if most := longestInteger(block.Bytes, maxNesting) * 8; most > maxKeyBits+8 { // a number may begin with a zero byte
			return fmt.Errorf("a key has %d bits: use a key of at most %d bits", most-8, maxKeyBits)
		}
	}
	return nil
}

// longestInteger returns the length in bytes of the longest number in DER, and in strings that
// contain DER, as in certificates and keys.
func longestInteger(der []byte, levels int) int {
	most := 0
	for len(der) > 0 && levels > 0 {
		var value asn1.RawValue
		rest, err := asn1.Unmarshal(der, &value)
		if err != nil {
			break
		}
		der = rest
		switch {
		case value.IsCompound:
			most = max(most, longestInteger(value.Bytes, levels-1))
		case value.Class != asn1.ClassUniversal:
		case value.Tag == asn1.TagInteger:
			most = max(most, len(value.Bytes))
		case value.Tag == asn1.TagOctetString:
			most = max(most, longestInteger(value.Bytes, levels-1))
		case value.Tag == asn1.TagBitString && len(value.Bytes) > 0:
			most = max(most, longestInteger(value.Bytes[1:], levels-1)) // after the number of unused bits
		}
	}
	return most
}
