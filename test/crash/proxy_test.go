package crash

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"scute.dev/test/apiserver"
	"scute.dev/test/harness"
	"scute.dev/test/process"
	"scute.dev/test/testbed"
)

// death selects the write at which a process is killed.
type death struct {
	source bool // the write goes to the source
	before bool // kill before the write is sent, not after it
	nth    int
	is     func(r *http.Request, body string) bool
}

// killer is a proxy between a process and the two API servers that kills the process with SIGKILL at a write.
type killer struct {
	at     death
	from   kubeconfigs
	begun  chan struct{} // closed after victim was set
	victim *process.Process

	mu   sync.Mutex
	seen int
}

// kubeconfigs are paths of kubeconfigs for two reverse proxies that have the administrator's permissions.
type kubeconfigs struct{ source, target string }

func newKiller(t *testing.T, at death) *killer {
	t.Helper()
	k := &killer{at: at, begun: make(chan struct{})}
	k.from = kubeconfigs{source: k.proxy(t, shared.blue.Side, true), target: k.proxy(t, shared.green.Side, false)}
	return k
}

// proxy starts a reverse proxy to a side and returns the path of its kubeconfig.
func (k *killer) proxy(t *testing.T, side *testbed.Side, source bool) string {
	t.Helper()
	to, err := url.Parse(side.Config().Host)
	harness.Must(t, err)
	transport, err := rest.TransportFor(side.Config())
	harness.Must(t, err)
	reverse := &httputil.ReverseProxy{
		Transport: transport,
		Rewrite:   func(r *httputil.ProxyRequest) { r.SetURL(to) },
		ModifyResponse: func(r *http.Response) error {
			if r.Request.Context().Value(last{}) != nil {
				return k.kill()
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			http.Error(w, err.Error(), http.StatusBadGateway)
		},
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	harness.Must(t, err)
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && k.chosen(r, source) {
			if k.at.before {
				if err := k.kill(); err != nil {
					http.Error(w, err.Error(), http.StatusBadGateway)
				}
				return
			}
			r = r.WithContext(context.WithValue(r.Context(), last{}, true))
		}
		reverse.ServeHTTP(w, r)
	})}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })
	content, err := apiserver.Kubeconfig(side.Name(), &rest.Config{Host: "http://" + listener.Addr().String()})
	harness.Must(t, err)
	path := filepath.Join(t.TempDir(), "kubeconfig")
	harness.Must(t, os.WriteFile(path, content, 0o600))
	return path
}

// last is the context key of the request after which the process is killed.
type last struct{}

// chosen reports whether the process must be killed at this write.
func (k *killer) chosen(r *http.Request, source bool) bool {
	content, err := io.ReadAll(r.Body)
	r.Body = io.NopCloser(bytes.NewReader(content))
	if err != nil || source != k.at.source || !k.at.is(r, string(content)) {
		return false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.seen++
	return k.seen == k.at.nth
}

func (k *killer) kill() error {
	<-k.begun
	if err := k.victim.Kill(context.Background()); err != nil {
		return err
	}
	return fmt.Errorf("process %d was killed", k.victim.PID())
}
