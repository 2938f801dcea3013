package backup

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"scute.dev/test/harness"
	"scute.dev/test/testbed"
)

// killer is a proxy between a command and an API server. It kills the command at the n-th request that counts: before
// the server receives it, or after it was executed and before the command receives the response.
type killer struct {
	kubeconfig string
	counts     func(*http.Request) bool

	mu   sync.Mutex
	left int // requests until the kill; 0 means never
	late bool
	kill func()
}

func newKiller(t *testing.T, on *testbed.Side, counts func(*http.Request) bool) *killer {
	t.Helper()
	config := on.Config()
	transport, err := rest.TransportFor(config)
	harness.Must(t, err)
	server, err := url.Parse(config.Host)
	harness.Must(t, err)
	k := &killer{counts: counts, kubeconfig: filepath.Join(t.TempDir(), "kubeconfig")}
	proxy := httputil.NewSingleHostReverseProxy(server)
	proxy.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
		due, late := k.due(r)
		if due && !late {
			k.end()
			return nil, context.Canceled
		}
		answer, err := transport.RoundTrip(r)
		if due {
			k.end()
		}
		return answer, err
	})
	proxy.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, _ error) { w.WriteHeader(http.StatusBadGateway) }
	listener := httptest.NewServer(proxy)
	t.Cleanup(listener.Close)
	harness.Must(t, clientcmd.WriteToFile(clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{"it": {Server: listener.URL}},
		Contexts:       map[string]*clientcmdapi.Context{"it": {Cluster: "it"}},
		CurrentContext: "it",
	}, k.kubeconfig))
	return k
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func (k *killer) due(r *http.Request) (due, late bool) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.left == 0 || !k.counts(r) {
		return false, false
	}
	k.left--
	return k.left == 0, k.late
}

func (k *killer) end() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.kill()
}

// run runs a scutectl command and kills it with SIGKILL at the n-th request. It returns whether the command ended
// before that, and its output.
func (k *killer) run(ctx context.Context, t *testing.T, n int, late bool, args ...string) (ended bool, said string) {
	t.Helper()
	var out strings.Builder
	cmd := command(ctx, k.kubeconfig, args...)
	cmd.Stdout, cmd.Stderr = &out, &out
	k.mu.Lock()
	k.left, k.late = n, late
	k.kill = func() { _ = cmd.Process.Signal(os.Kill) } // it may have exited
	harness.Must(t, cmd.Start())
	k.mu.Unlock()
	_ = cmd.Wait() // the result is in its state
	k.mu.Lock()
	defer k.mu.Unlock()
	switch killed := k.left == 0; {
	case cmd.ProcessState.ExitCode() == 0:
		return true, out.String()
	case !killed || cmd.ProcessState.ExitCode() != -1:
		t.Fatalf("scutectl %s: exit status %d\n%s", strings.Join(args, " "), cmd.ProcessState.ExitCode(), out.String())
	}
	return false, out.String()
}

// writes reports whether a request changes something.
func writes(r *http.Request) bool {
	return r.Method != http.MethodGet && !strings.Contains(r.URL.RawQuery, "dryRun") && !strings.Contains(r.URL.Path, "selfsubject")
}
