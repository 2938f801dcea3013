package reach

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/httpstream"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"

	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
)

// inCluster reaches the log inside the daemon's pod.
func (f *Flags) inCluster(ctx context.Context, logger *slog.Logger) (*Log, error) {
	cluster, err := f.Cluster()
	if err != nil {
		return nil, err
	}
	pod, err := f.Daemon(ctx, cluster)
	if err != nil {
		return nil, err
	}
	port, err := listens(pod)
	if err != nil {
		return nil, err
	}
	local, stop, err := forward(ctx, cluster.Config, pod, port)
	if err != nil {
		return nil, fmt.Errorf("forwarding a port to the log in pod %s/%s: %w; you need permission to create pods/portforward there; --log or --nats name a log directly",
			pod.Namespace, pod.Name, err)
	}
	log, err := f.connect(ctx, "nats://"+local, logger)
	if err != nil {
		stop()
		return nil, fmt.Errorf("reaching the log in pod %s/%s: %w", pod.Namespace, pod.Name, err)
	}
	return &Log{Log: log, Where: "pod " + pod.Namespace + "/" + pod.Name, stop: stop}, nil
}

// listens reads from the daemon's own arguments where its log can be reached.
func listens(pod *corev1.Pod) (port int, err error) {
	for _, c := range pod.Spec.Containers {
		for _, arg := range append(c.Command, c.Args...) {
			if url, ok := strings.CutPrefix(arg, "--nats-url="); ok {
				return 0, fmt.Errorf("the daemon keeps its log on the NATS server %s: reach it from here with --nats, and --nats-creds or --nats-cert as it demands", url)
			}
			if address, ok := strings.CutPrefix(arg, "--log-listen="); ok {
				_, p, err := net.SplitHostPort(address)
				if err == nil {
					port, err = strconv.Atoi(p)
				}
				if err != nil {
					return 0, fmt.Errorf("pod %s/%s has the argument %s: the port cannot be read", pod.Namespace, pod.Name, arg)
				}
			}
		}
	}
	if port == 0 {
		return 0, fmt.Errorf("the daemon in pod %s/%s lets nobody at its log: set log.listen of the chart, for example to 127.0.0.1:4222", pod.Namespace, pod.Name)
	}
	return port, nil
}

// forward opens a local port that leads into a pod, over a WebSocket, or SPDY where the API server knows no other. It
// lasts until stop is called; ctx bounds its making.
func forward(ctx context.Context, config *rest.Config, pod *corev1.Pod, port int) (local string, stop func(), err error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return "", nil, err
	}
	target := core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return "", nil, err
	}
	overSPDY := spdy.NewDialer(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialer(target, config)
	if err != nil {
		return "", nil, err
	}
	dialer := portforward.NewFallbackDialer(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
	stopping, ready := make(chan struct{}), make(chan struct{})
	var said said
	forwarder, err := portforward.NewOnAddresses(dialer, []string{"127.0.0.1"}, []string{fmt.Sprintf("0:%d", port)}, stopping, ready, nil, &said)
	if err != nil {
		return "", nil, err
	}
	ended := make(chan error, 1)
	go func() { ended <- forwarder.ForwardPorts() }()
	var once sync.Once
	stop = func() { once.Do(func() { close(stopping) }) }
	select {
	case <-ready:
	case err := <-ended:
		return "", nil, cmpOr(err, errors.New("it ended at once: "+said.String()))
	case <-ctx.Done():
		stop()
		return "", nil, ctx.Err()
	}
	ports, err := forwarder.GetPorts()
	if err != nil {
		stop()
		return "", nil, err
	}
	return fmt.Sprintf("127.0.0.1:%d", ports[0].Local), func() { stop(); <-ended }, nil
}

func cmpOr(err, otherwise error) error {
	if err != nil {
		return err
	}
	return otherwise
}

// said keeps what the forwarder complains of.
type said struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (s *said) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.buf.Write(b)
}

func (s *said) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strings.TrimSpace(s.buf.String())
}
