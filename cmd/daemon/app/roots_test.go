package app

import (
	"crypto/x509"
	"path/filepath"
	"testing"
)

// TestRootsWithoutASystem checks that the embedded root certificates are used if the system has none, as in the image.
func TestRootsWithoutASystem(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	pool, err := x509.SystemCertPool()
	if err != nil || pool.Equal(x509.NewCertPool()) {
		t.Errorf("the system pool is empty: %v", err)
	}
}
