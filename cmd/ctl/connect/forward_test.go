package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
)

func TestMain(m *testing.M) {
	// Goroutines of the SPDY library end shortly after their connection.
	goleak.VerifyTestMain(m)
}

// kubelet serves a port-forward over SPDY as a node does: each pair of streams is a connection to the address.
func kubelet(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if _, err := httpstream.Handshake(req, w, []string{"portforward.k8s.io"}); err != nil {
			return
		}
		data, complaints := make(chan httpstream.Stream, 16), make(chan httpstream.Stream, 16)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, replied <-chan struct{}) error {
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				go func() { <-replied; data <- s }()
			} else {
				go func() { <-replied; complaints <- s }()
			}
			return nil
		})
		if conn == nil {
			return
		}
		defer conn.Close()
		for {
			select {
			case <-conn.CloseChan():
				return
			case s := <-data:
				complain := <-complaints
				go func() {
					defer complain.Close()
					defer func() { _ = s.Reset() }()
					to, err := (&net.Dialer{}).DialContext(req.Context(), "tcp", address)
					if err != nil {
						fmt.Fprintf(complain, "error forwarding port: %v", err)
						return
					}
					defer to.Close()
					go func() { _, _ = io.Copy(to, s); to.Close() }()
					_, _ = io.Copy(s, to)
				}()
			}
		}
	}
}

func pod(args ...string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "scute-system", Name: "scute-0"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "scuted", Args: args}}},
	}
}

// entryTo returns a function that connects to the daemon behind a test API server.
func entryTo(url string) func(context.Context) (*podConn, error) {
	return func(ctx context.Context) (*podConn, error) {
		return openLogPort(ctx, &rest.Config{Host: url}, pod("--log-listen=127.0.0.1:4222"))
	}
}

// TestPodDialerLeadsToTheLogAndFindsItAgain checks that the log can be appended to through a
// tunnel, also after the daemon was restarted. The API server does not support WebSocket, so this
// also tests the fallback to SPDY.
func TestPodDialerLeadsToTheLogAndFindsItAgain(t *testing.T) {
	dir, quiet := t.TempDir(), slog.New(slog.DiscardHandler)
	log, err := embedded.Open(t.Context(), embedded.Options{Dir: dir, Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	address := strings.TrimPrefix(log.URL(), "nats://")
	api := httptest.NewServer(kubelet(address))
	defer api.Close()
	dialer, err := newPodDialer(t.Context(), entryTo(api.URL), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer dialer.stop()
	through, err := New().connectPod(t.Context(), dialer, nil, quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	write := func(id string, expected uint64) {
		t.Helper()
		receipt, err := through.Append(t.Context(), eventlog.Commit{
			Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, ID: id, Expected: expected,
			Events: []eventlog.Event{{Type: "dev.scute.move.claimed.v1", Time: time.Now(), Actor: "user/test", Data: []byte(`{}`)}},
		})
		if err != nil || receipt.Seq != expected+1 {
			t.Fatalf("receipt sequence = %d, error %v", receipt.Seq, err)
		}
	}
	write("1", 0)

	// After a restart of the daemon, the connection is restored.
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if log, err = embedded.Open(t.Context(), embedded.Options{Dir: dir, Listen: address}); err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	write("2", 1)
	if head, err := log.Head(t.Context()); err != nil || head != 2 {
		t.Errorf("head of the daemon's log = %d, error %v", head, err)
	}
}

func TestWhatTheNodeComplainsOfIsTold(t *testing.T) {
	nobody, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody.Close()
	api := httptest.NewServer(kubelet(nobody.Addr().String()))
	defer api.Close()
	quiet := slog.New(slog.DiscardHandler)
	dialer, err := newPodDialer(t.Context(), entryTo(api.URL), quiet)
	if err != nil {
		t.Fatal(err)
	}
	defer dialer.stop()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	_, err = New().connectPod(ctx, dialer, nil, quiet)
	if err == nil || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("got %v", err)
	}
}

func TestPodDialerThatIsRefusedEnds(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `pods "scute-0" is forbidden`, http.StatusForbidden)
	}))
	defer api.Close()
	_, err := newPodDialer(t.Context(), entryTo(api.URL), slog.New(slog.DiscardHandler))
	if err == nil || !strings.Contains(err.Error(), "forbidden") || !strings.Contains(err.Error(), "ask for permission to create pods/portforward") {
		t.Errorf("got %v", err)
	}
}

func TestPodDialerThatHangsEndsWithItsDeadline(t *testing.T) {
	release := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer api.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := newPodDialer(ctx, entryTo(api.URL), slog.New(slog.DiscardHandler)); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestListensReadsTheDaemonsArguments(t *testing.T) {
	if port, err := logPort(pod("--log-dir=/var/lib/scute", "--log-listen=127.0.0.1:4222")); err != nil || port != 4222 {
		t.Errorf("listens = %d, %v", port, err)
	}
	for args, want := range map[string]string{
		"--log-dir=/var/lib/scute":                    "set log.listen of the chart",
		"--nats-url=tls://nats:4222":                  "connect with --nats",
		"--log-listen=4222":                           "the port cannot be read",
		"--log-dir=/d --log-listen=127.0.0.1:nothing": "the port cannot be read",
	} {
		if _, err := logPort(pod(strings.Fields(args)...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("listens(%s) = %v", args, err)
		}
	}
}

// hanging is a connection to a pod that transfers nothing until it is closed.
type hanging struct {
	httpstream.Stream
	closed chan struct{}
}

func (h hanging) wait() (int, error) {
	<-h.closed
	return 0, io.EOF
}

func (h hanging) Read([]byte) (int, error)  { return h.wait() }
func (h hanging) Write([]byte) (int, error) { return h.wait() }

type hangingConn struct {
	httpstream.Connection
	closed chan struct{}
	once   *sync.Once
}

func (h hangingConn) Close() error {
	h.once.Do(func() { close(h.closed) })
	return nil
}

// TestPodDialerStopsWhileAWriteHangs checks that stopping the dialer closes a connection that transfers nothing.
func TestPodDialerStopsWhileAWriteHangs(t *testing.T) {
	closed := make(chan struct{})
	none := make(chan error)
	close(none)
	dialer, err := newPodDialer(t.Context(), func(context.Context) (*podConn, error) {
		return &podConn{Stream: hanging{closed: closed}, conn: hangingConn{closed: closed, once: new(sync.Once)}, remoteErr: none}, nil
	}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	local, err := dialer.Dial("", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := local.Write([]byte("x")); err != nil {
		t.Fatal(err)
	}
	local.Close()
	dialer.stop()
	select {
	case <-closed:
	case <-time.After(5 * time.Second):
		t.Error("the connection to the pod is still open")
	}
}
