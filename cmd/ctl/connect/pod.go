package connect

import (
	"context"
	"fmt"
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
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/internal/logaccess"
)

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
	d, err := newPodDialer(ctx, func(ctx context.Context) (*podConn, error) {
		pod, err := f.daemon(ctx, cluster)
		if err != nil {
			return nil, err
		}
		return openLogPort(ctx, cluster.Config, pod)
	}, logger)
	if err != nil {
		return nil, err
	}
	log, err := f.connectPod(ctx, d, p, logger)
	if err != nil {
		d.stop()
		return nil, fmt.Errorf("reaching the log in %s: %w", where, err)
	}
	return &Log{Log: log, Where: where, stop: d.stop}, nil
}

// connectPod connects to the log in the daemon's pod. If that fails, it adds the last error of the
// dialer to the client's error.
func (f *Flags) connectPod(ctx context.Context, d *podDialer, p *tokenSource, logger *slog.Logger) (*eventlog.Log, error) {
	log, err := f.connect(ctx, eventlog.ExternalOptions{URL: "nats://127.0.0.1", Dialer: d, Logger: logger}, p)
	if last := d.lastError(); err != nil && last != nil {
		err = fmt.Errorf("%w: %w", err, last)
	}
	return log, err
}

// podToken returns the source of the token for the log. It returns nil if the daemon requires no
// token, as older versions do.
func podToken(ctx context.Context, cluster *Cluster, pod *corev1.Pod, role embedded.Role, logger *slog.Logger) (*tokenSource, error) {
	where, found := argument(pod, logaccess.Flag)
	if !found {
		return nil, nil
	}
	secrets, err := logaccess.Parse(where)
	if err != nil {
		return nil, fmt.Errorf("pod %s/%s has an argument that cannot be read: %w", pod.Namespace, pod.Name, err)
	}
	p := &tokenSource{cluster: cluster, secrets: secrets, role: role, logger: logger}
	if p.last, err = p.token(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

func openLogPort(ctx context.Context, config *rest.Config, pod *corev1.Pod) (*podConn, error) {
	port, err := logPort(pod)
	if err != nil {
		return nil, err
	}
	conn, err := dialPod(ctx, config, pod, port)
	if err != nil {
		remedy := "check the pod and its node (kubectl -n " + pod.Namespace + " describe pod " + pod.Name + ")"
		if strings.Contains(err.Error(), "forbidden") {
			remedy = "ask for permission to create pods/portforward there"
		}
		return nil, fmt.Errorf("forwarding a port to the log in pod %s/%s: %w: %s, or name the log with --log or --nats", pod.Namespace, pod.Name, err, remedy)
	}
	return conn, nil
}

// argument returns the value of a flag in the arguments of a pod.
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

// logPort reads the port of the log from the daemon's arguments.
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

// dial returns a dialer that opens port-forwards over WebSocket, or over SPDY if the server does
// not support WebSocket.
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
	// client-go's WebSocket returns the errors of k8s.io/streaming. IsUpgradeFailure of the other
	// httpstream package does not recognize them, so there would be no fallback.
	return portforward.NewFallbackDialerForStreaming(overWebSocket, overSPDY, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	}), nil
}

// The daemon's pods have this label. Their names depend on the chart's values.
const (
	daemonLabel     = "scute.dev/component"
	daemonComponent = "daemon"
)

// Daemons lists the daemon's pods.
func (f *Flags) Daemons(ctx context.Context, c *Cluster) ([]corev1.Pod, error) {
	var pods corev1.PodList
	if err := c.Client.List(ctx, &pods, client.InNamespace(f.ScuteNamespace), client.MatchingLabels{daemonLabel: daemonComponent}); err != nil {
		return nil, fmt.Errorf("looking for the daemon's pod in namespace %s: %w", f.ScuteNamespace, c.Explain(err))
	}
	return pods.Items, nil
}

// daemon returns a running pod of the daemon, preferably a ready one.
func (f *Flags) daemon(ctx context.Context, c *Cluster) (*corev1.Pod, error) {
	pods, err := f.Daemons(ctx, c)
	if err != nil {
		return nil, err
	}
	var found *corev1.Pod
	for i := range pods {
		p := &pods[i]
		if p.Status.Phase != corev1.PodRunning || p.DeletionTimestamp != nil {
			continue
		}
		if found == nil || Ready(p) {
			found = p
		}
	}
	if found == nil {
		return nil, fmt.Errorf("no pod of scute runs in namespace %s: set --scute-namespace if it is installed elsewhere. "+
			"If the daemon runs outside the cluster, name its log with --log or --nats", f.ScuteNamespace)
	}
	return found, nil
}

// Ready reports whether a pod is ready.
func Ready(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}
