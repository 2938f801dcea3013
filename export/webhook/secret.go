package webhook

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode"
)

// Secret is the folder of a mounted Secret that contains the token and the certificate authority of
// the receiver; "" means none.
type Secret string

// The files in the folder. Each of them may be missing.
const (
	// tokenFile contains the bearer token. It is read for each request, so that it can be changed.
	tokenFile = "token"
	// caFile contains the certificate authorities of the receiver, which replace the system
	// certificate authorities.
	caFile = "ca.crt"
)

func (s Secret) token() (string, error) {
	text, err := s.read(tokenFile)
	token := strings.TrimSpace(string(text))
	if strings.ContainsFunc(token, unicode.IsControl) {
		return "", fmt.Errorf("%s in the secret of the webhook has a line break or another control character: it must be one line", tokenFile)
	}
	return token, err
}

// NewClient returns a client for the receiver. It follows no redirects, so that events are posted
// only to the operator's URL.
func (s Secret) NewClient() (*http.Client, error) {
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, ForceAttemptHTTP2: true, MaxIdleConns: 2, TLSHandshakeTimeout: requestTimeout}
	bundle, err := s.read(caFile)
	if err != nil {
		return nil, err
	}
	if len(bundle) > 0 {
		pool := x509.NewCertPool()
		if !pool.AppendCertsFromPEM(bundle) {
			return nil, fmt.Errorf("%s in the secret of the webhook has no certificate in PEM", caFile)
		}
		transport.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}
	}
	return &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}, nil
}

func (s Secret) read(name string) ([]byte, error) {
	if s == "" {
		return nil, nil
	}
	text, err := os.ReadFile(filepath.Join(string(s), name))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the secret of the webhook: %w", err)
	}
	return text, nil
}
