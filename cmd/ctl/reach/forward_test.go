package reach

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
	"k8s.io/streaming/pkg/httpstream/spdy"

	"scute.dev/eventlog"
)

func TestMain(m *testing.M) {
	// The SPDY library's goroutines end a little after their connection.
	goleak.VerifyTestMain(m)
}

// kubelet answers a port-forward over SPDY as a node does: a pair of streams is a connection to the address.
func kubelet(address string) http.HandlerFunc {
	return func(w http.ResponseWriter, req *http.Request) {
		if _, err := httpstream.Handshake(req, w, []string{"portforward.k8s.io"}); err != nil {
			return
		}
		data := make(chan httpstream.Stream, 16)
		conn := spdy.NewResponseUpgrader().UpgradeResponse(w, req, func(s httpstream.Stream, _ <-chan struct{}) error {
			if s.Headers().Get(corev1.StreamType) == corev1.StreamTypeData {
				data <- s
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
				go func() {
					defer func() { _ = s.Reset() }()
					to, err := (&net.Dialer{}).DialContext(req.Context(), "tcp", address)
					if err != nil {
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

// The API server here knows no WebSocket, so this is the way back to SPDY too.
func TestForwardLeadsToTheLog(t *testing.T) {
	log, err := eventlog.OpenEmbedded(t.Context(), eventlog.EmbeddedOptions{Dir: t.TempDir(), Listen: "127.0.0.1:0"})
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	api := httptest.NewServer(kubelet(strings.TrimPrefix(log.URL(), "nats://")))
	defer api.Close()

	local, stop, err := forward(t.Context(), &rest.Config{Host: api.URL}, pod(), 4222)
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	f := New()
	through, err := f.connect(t.Context(), "nats://"+local, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	defer through.Close()
	receipt, err := through.Append(t.Context(), eventlog.Commit{
		Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "a"}, ID: "1",
		Events: []eventlog.Event{{Type: "dev.scute.move.claimed.v1", Time: time.Now(), Actor: "user/test", Data: []byte(`{}`)}},
	})
	if err != nil || receipt.Seq != 1 {
		t.Fatalf("sequence %d, %v", receipt.Seq, err)
	}
	if head, err := log.Head(t.Context()); err != nil || head != 1 {
		t.Errorf("the daemon's log ends at %d, %v", head, err)
	}
}

func TestForwardThatIsRefusedEnds(t *testing.T) {
	api := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, `pods "scute-0" is forbidden`, http.StatusForbidden)
	}))
	defer api.Close()
	_, _, err := forward(t.Context(), &rest.Config{Host: api.URL}, pod(), 4222)
	if err == nil || !strings.Contains(err.Error(), "forbidden") {
		t.Errorf("got %v", err)
	}
}

func TestForwardThatHangsEndsWithItsDeadline(t *testing.T) {
	release := make(chan struct{})
	api := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	defer api.Close()
	defer close(release)
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, _, err := forward(ctx, &rest.Config{Host: api.URL}, pod(), 4222); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
}

func TestListensReadsTheDaemonsArguments(t *testing.T) {
	if port, err := listens(pod("--log-dir=/var/lib/scute", "--log-listen=127.0.0.1:4222")); err != nil || port != 4222 {
		t.Errorf("port %d, %v", port, err)
	}
	for args, want := range map[string]string{
		"--log-dir=/var/lib/scute":                    "set log.listen of the chart",
		"--nats-url=tls://nats:4222":                  "reach it from here with --nats",
		"--log-listen=4222":                           "the port cannot be read",
		"--log-dir=/d --log-listen=127.0.0.1:nothing": "the port cannot be read",
	} {
		if _, err := listens(pod(strings.Fields(args)...)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", args, err)
		}
	}
}
