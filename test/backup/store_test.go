package backup

import (
	"context"
	"encoding/pem"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"scute.dev/test/assets"
	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/process"
)

// bucket is the store's bucket. access and secret are its credentials.
const bucket, access, secret = "backups", "testaccess", "testsecretkey"

// store is a real S3-compatible store behind a TLS proxy that counts uploads.
type store struct {
	program, dir, logs, address string
	process                     *process.Process

	// endpoint is its URL, ca its certificate in PEM.
	endpoint string
	ca       []byte

	mu   sync.Mutex
	left int // uploads until at is called; 0 means never
	at   func()
}

func newStore(ctx context.Context, t *testing.T) *store {
	t.Helper()
	folder, err := assets.Build(ctx, os.Stderr, assets.Store)
	harness.Must(t, err)
	s := &store{program: filepath.Join(folder, "versitygw"), dir: t.TempDir(), logs: t.TempDir(), address: ports.AddressForTest(t)}
	harness.Must(t, os.Mkdir(filepath.Join(s.dir, bucket), 0o755))
	s.start(ctx, t)
	behind := &url.URL{Scheme: "http", Host: s.address}
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(behind)
			r.Out.Host = r.In.Host // it is part of the signature
		},
		ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError), // the store is stopped at times
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPut && s.due() {
			s.at()
			panic(http.ErrAbortHandler)
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	s.endpoint, s.ca = server.URL, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	return s
}

// start starts the store and waits until it listens.
func (s *store) start(ctx context.Context, t *testing.T) {
	t.Helper()
	p, err := process.Start(process.Spec{
		Path: s.program, Log: filepath.Join(s.logs, "store.log"),
		Args: []string{"--port", s.address, "--access", access, "--secret", secret, "--quiet", "posix", s.dir},
	})
	harness.Must(t, err)
	s.process = p
	t.Cleanup(func() { _ = p.Kill(context.WithoutCancel(ctx)) })
	harness.Await(ctx, t, "the store listens", func() string {
		harness.Must(t, p.Exited())
		c, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.address)
		if err != nil {
			return err.Error()
		}
		_ = c.Close()
		return ""
	})
}

// onPut calls a function instead of the n-th upload from now.
func (s *store) onPut(n int, call func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left, s.at = n, call
}

func (s *store) due() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left == 0 {
		return false
	}
	s.left--
	return s.left == 0
}

// backups returns the names of a schedule's folders in the bucket, the complete and the incomplete ones.
func (s *store) backups(t *testing.T, folder string) (complete, incomplete []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(s.dir, bucket, filepath.FromSlash(folder)))
	if os.IsNotExist(err) {
		return nil, nil
	}
	harness.Must(t, err)
	for _, e := range entries {
		_, err := os.Stat(filepath.Join(s.dir, bucket, filepath.FromSlash(folder), e.Name(), "SHA256SUMS"))
		switch {
		case err == nil:
			complete = append(complete, e.Name())
		case os.IsNotExist(err):
			incomplete = append(incomplete, e.Name())
		default:
			t.Fatal(err)
		}
	}
	return complete, incomplete
}
