package connect

import (
	"context"
	"crypto/tls"
	"encoding/pem"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/eventlog/logtest"
)

// serveTLS starts a NATS server with the certificate of httptest, and writes its CA to a file.
func serveTLS(t *testing.T, clients bool) (url, ca string) {
	t.Helper()
	web := httptest.NewTLSServer(nil)
	t.Cleanup(web.Close)
	ca = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(ca, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	config := &tls.Config{Certificates: web.TLS.Certificates, MinVersion: tls.VersionTLS12}
	if clients {
		config.ClientAuth = tls.RequireAnyClientCert
	}
	srv := logtest.Serve(t, &server.Options{TLSConfig: config, TLS: true, TLSTimeout: 10})
	return strings.Replace(srv.ClientURL(), "nats://", "tls://", 1), ca
}

// TestUnreached checks that the error for an unreachable NATS server names the option to check.
func TestUnreached(t *testing.T) {
	open, ca := serveTLS(t, false)
	asking, itsCA := serveTLS(t, true)
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := "nats://" + listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct{ url, ca, says string }{
		"unknown authority":     {open, "", "name the authority that signed the server's certificate with --nats-ca"},
		"another name":          {strings.Replace(open, "127.0.0.1", "localhost", 1), ca, "use an address in --nats that the server's certificate names"},
		"no client certificate": {asking, itsCA, "set --nats-cert and --nats-key"},
		"nobody listens":        {nobody, "", "check that a NATS server runs there"},
	} {
		f := New()
		f.URL, f.CA = c.url, c.ca
		log, err := f.Log(t.Context(), io.Discard)
		if err == nil {
			t.Fatal(log.Close())
		}
		if !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: got error %v, want %q", name, err, c.says)
		}
	}
	f := New()
	if err := f.ExplainConnect(context.Canceled); err != context.Canceled || f.ExplainConnect(nil) != nil { //nolint:errorlint // it is the same one
		t.Error(err)
	}
	if err := f.ExplainConnect(eventlog.ErrDenied); !strings.Contains(err.Error(), "--nats-creds") {
		t.Error(err)
	}
}
