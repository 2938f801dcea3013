package app

import (
	"crypto/x509"
	"path/filepath"
	"testing"
)

// TestRootsWithoutASystem: in the image, which has no certificates of authorities, those in the program are used.
func TestRootsWithoutASystem(t *testing.T) {
	t.Setenv("SSL_CERT_FILE", filepath.Join(t.TempDir(), "none"))
	t.Setenv("SSL_CERT_DIR", t.TempDir())
	pool, err := x509.SystemCertPool()
	if err != nil || pool.Equal(x509.NewCertPool()) {
		t.Errorf("there are no authorities: %v", err)
	}
}
