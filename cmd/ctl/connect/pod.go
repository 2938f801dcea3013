package connect

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/portforward"
	"k8s.io/client-go/transport/spdy"
	"k8s.io/streaming/pkg/httpstream"

	"scute.dev/eventlog/embedded"
)

// inCluster connects to the log inside the daemon's pod.
func (f *Flags) inCluster(ctx context.Context, role embedded.Role, logger *slog.Logger) (*Log, error) {
	cluster, err := f.ClusterOrLog()
	if err != nil {
		return nil, err
	}
	first, err := f.daemon(ctx, cluster) // later connections may reach another pod
	if err != nil {
		return nil, err
	}
	where := "pod " + first.Namespace + "/" + first.Name
	p, err := podToken(ctx, cluster, first, role, logger)
	if err != nil {
		return nil, err
	}
	t, err := newTunnel(ctx, func(ctx context.Context) (io.ReadWriteCloser, error) {
		pod, err := f.daemon(ctx, cluster)
		if err != nil {
			return nil, err
		}
		return openLogPort(ctx, cluster.Config, pod)
	}, logger)
	if err != nil {
		return nil, err
	}
	log, err := f.connect(ctx, "nats://"+t.address(), p, logger)
	if err != nil {
		t.close()
		return nil, fmt.Errorf("reaching the log in %s: %w", where, t.explain(err))
	}
	return &Log{Log: log, Where: where, UsesToken: p != nil, stop: t.close}, nil
}

// podToken reads the token for the log in a pod. It returns nil if the daemon requires none.
func podToken(ctx context.Context, cluster *Cluster, pod *corev1.Pod, role embedded.Role, logger *slog.Logger) (*tokenSource, error) {
	secrets, ok, err := logSecrets(pod)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s has an argument that cannot be read: %w", pod.Namespace, pod.Name, err)
	}
	if !ok {
		return nil, nil
	}
	p := &tokenSource{cluster: cluster, secrets: secrets, role: role, logger: logger}
	if _, err := p.token(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// openLogPort opens a connection to the log's port in a pod.
func openLogPort(ctx context.Context, config *rest.Config, pod *corev1.Pod) (io.ReadWriteCloser, error) {
	port, err := logPort(pod)
	if err != nil {
		return nil, err
	}
	conn, err := connectPod(ctx, config, pod, port)
	if err != nil {
		remedy := "check the pod and its node (kubectl -n " + pod.Namespace + " describe pod " + pod.Name + ")"
		if strings.Contains(err.Error(), "forbidden") {
			remedy = "ask for permission to create pods/portforward there"
		}
		return nil, fmt.Errorf("forwarding a port to the log in pod %s/%s: %w: %s, or name the log with --log or --nats", pod.Namespace, pod.Name, err, remedy)
	}
	return conn, nil
}

// argument returns the value of an option in the arguments of a pod.
func argument(pod *corev1.Pod, option string) (value string, found bool) {
	for _, c := range pod.Spec.Containers {
		for _, arg := range append(c.Command, c.Args...) {
			if value, found = strings.CutPrefix(arg, option+"="); found {
				return value, true
			}
		}
	}
	return "", false
}

// logPort reads from the daemon's own arguments where its log can be reached.
func logPort(pod *corev1.Pod) (port int, err error) {
	if url, ok := argument(pod, "--nats-url"); ok {
		return 0, fmt.Errorf("the daemon keeps its log on the NATS server %s: connect with --nats, and with --nats-creds or --nats-cert if the server requires one", url)
	}
	if address, ok := argument(pod, "--log-listen"); ok {
		_, p, err := net.SplitHostPort(address)
		if err == nil {
			port, err = strconv.Atoi(p)
		}
		if err != nil {
			return 0, fmt.Errorf("pod %s/%s has the argument --log-listen=%s: the port cannot be read", pod.Namespace, pod.Name, address)
		}
	}
	if port == 0 {
		return 0, fmt.Errorf("the daemon in pod %s/%s does not listen for readers of its log: set log.listen of the chart, for example to 127.0.0.1:4222", pod.Namespace, pod.Name)
	}
	return port, nil
}

// dial returns a dialer for port-forwards to a pod: WebSocket, or SPDY if the API server or a proxy before it does not support WebSocket.
func dial(config *rest.Config, pod *corev1.Pod) (httpstream.Dialer, error) {
	core, err := corev1client.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	target := core.RESTClient().Post().Resource("pods").Namespace(pod.Namespace).Name(pod.Name).SubResource("portforward").URL()
	transport, upgrader, err := spdy.RoundTripperFor(config)
	if err != nil {
		return nil, err
	}
	overSPDY := spdy.NewDialerForStreaming(upgrader, &http.Client{Transport: transport}, http.MethodPost, target)
	overWebSocket, err := portforward.NewSPDYOverWebsocketDialerForStreaming(target, config)
	if err != nil {
		return nil, err
	}
	// client-go's WebSocket returns the errors of k8s.io/streaming. IsUpgradeFailure of the other httpstream package would not recognize them, so the
	// fallback would never happen.
	return portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}
