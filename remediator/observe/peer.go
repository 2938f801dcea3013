package observe

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strings"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/remotecommand"
	"k8s.io/client-go/util/exec"
	"k8s.io/streaming/pkg/httpstream"

	"scute.dev/kube/object"
)

const (
	// peerTimeout bounds one run of etcdctl with all that is around it, ctlTimeout what it waits for the member.
	peerTimeout = 4 * time.Second
	ctlTimeout  = 2 * time.Second
	// mostPeers are tried, when etcdctl cannot be run in the pod of the first.
	mostPeers = 2
	// mostOutput of etcdctl is read.
	mostOutput = 64 << 10
)

// askPeers asks the members of the list that were not heard: by etcdctl in the pod of a member that answers through its
// own node, so that the kubelet of another machine does it. Of a list that has more of them than an etcd has members, some
// stay as they are.
func (d *dialer) askPeers(ctx context.Context, list []*etcd.Member, answers []answer) {
	var peers []string
	for _, a := range answers {
		if a.answers == object.True && a.way == (way{}) && len(peers) < mostPeers {
			peers = append(peers, a.node)
		}
	}
	if len(peers) == 0 {
		return
	}
	var group errgroup.Group
	left := atOnce
	for i := range answers {
		m := named(list, answers[i].node)
		if answers[i].spoke() || m == nil || clientURL(m) == "" || left == 0 {
			continue
		}
		left--
		group.Go(func() error {
			answers[i] = answers[i].or(d.askPeer(ctx, peers, m))
			return nil
		})
	}
	_ = group.Wait() // there is no error: each is in its answer
}

// askPeer asks a member by the first of its peers that runs etcdctl.
func (d *dialer) askPeer(ctx context.Context, peers []string, m *etcd.Member) answer {
	a := answer{node: m.Name, answers: object.Unknown}
	for _, peer := range peers {
		a.way = way{peer: peer}
		output, err := d.etcdctl(ctx, peer, clientURL(m), "endpoint", "status", "--write-out=json")
		if err == nil {
			return a.read(output, m)
		}
		a.why = fmt.Sprintf("%s: %s", a.way, brief(err))
		if errors.As(err, new(*exitError)) {
			break // it ran: another peer would only take as long
		}
	}
	return a
}

// read takes in what etcdctl says of one member.
func (a answer) read(output []byte, m *etcd.Member) answer {
	var said []struct {
		Status struct {
			Header struct {
				Member uint64 `json:"member_id"`
			} `json:"header"`
			Leader uint64   `json:"leader"`
			Errors []string `json:"errors"`
		} `json:"Status"`
	}
	if err := json.Unmarshal(output, &said); err != nil || len(said) != 1 {
		a.why = fmt.Sprintf("%s: its output is not the status of one member", a.way)
		return a
	}
	status := said[0].Status
	if status.Header.Member != m.ID {
		a.why = fmt.Sprintf("%s: member %x answers in the place of member %x", a.way, status.Header.Member, m.ID)
		return a
	}
	a.answers, a.why, a.id, a.leader = object.True, "", m.ID, status.Leader
	if complaints := ownComplaints(status.Errors); len(complaints) > 0 {
		a.answers, a.why = object.False, brief(errors.New(strings.Join(complaints, "; ")))
	}
	return a
}

// clientURL of a member is where its peers reach it, "" when it lists none. It comes from the tenant, and is used in a pod
// of the tenant only.
func clientURL(m *etcd.Member) string {
	for _, text := range m.ClientURLs {
		u, err := url.Parse(text)
		if err != nil || len(text) > longestName || u.Scheme != "https" || strings.Contains(text, ",") {
			continue
		}
		if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsUnspecified() {
			return text
		}
	}
	return ""
}

// exitError says that etcdctl ran and failed, and what it said last.
type exitError struct{ said string }

func (e *exitError) Error() string { return e.said }

// etcdctl runs etcdctl in the etcd pod of a node, for the member at an endpoint, with the certificates that kubeadm gives
// every such pod. It returns what it printed, or why it failed: an exitError when it ran.
func (d *dialer) etcdctl(ctx context.Context, node, endpoint string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, peerTimeout)
	defer cancel()
	const pki = "/etc/kubernetes/pki/etcd/"
	command := append([]string{
		"etcdctl", "--endpoints=" + endpoint, "--cacert=" + pki + "ca.crt", "--cert=" + pki + "server.crt", "--key=" + pki + "server.key",
		"--dial-timeout=" + ctlTimeout.String(), "--command-timeout=" + ctlTimeout.String(),
	}, args...)
	executor, err := executor(d.bounded(ctx), podOf(node), command)
	if err != nil {
		return nil, err
	}
	var stdout, stderr limited
	if err := stream(ctx, func() error {
		return executor.StreamWithContext(ctx, remotecommand.StreamOptions{Stdout: &stdout, Stderr: &stderr})
	}); err != nil {
		return failed(err, &stderr)
	}
	return stdout.Bytes(), nil
}

// streams are the runs that may not have ended yet. A stream over SPDY ends when the API server ends it, and not with its context: a
// tenant's may never do so. Nobody waits for it then, and so many may be left behind.
var streams = make(chan struct{}, 32) //nolint:gochecknoglobals // it bounds the process

// stream runs one, and returns when ctx ends at the latest.
func stream(ctx context.Context, run func() error) error {
	select {
	case streams <- struct{}{}:
	default:
		return fmt.Errorf("%d earlier runs have not ended: their API servers keep them open", cap(streams))
	}
	ended := make(chan error, 1)
	go func() {
		defer func() { <-streams }()
		ended <- run()
	}()
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// failed says why a run failed: an exitError when etcdctl ran.
func failed(err error, stderr *limited) ([]byte, error) {
	var exit exec.CodeExitError
	switch {
	case errors.As(err, &exit):
		return nil, &exitError{said: stderr.last(exit.Code)}
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no result within %s", peerTimeout)
	default:
		return nil, err
	}
}

// executor runs a command in the etcd container of a pod: over a WebSocket, or SPDY where the API server, or what is
// before it, knows no better.
func executor(config *rest.Config, pod string, command []string) (remotecommand.Executor, error) {
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	u := base.JoinPath("api", "v1", "namespaces", metav1.NamespaceSystem, "pods", pod, "exec")
	query, err := scheme.ParameterCodec.EncodeParameters(&corev1.PodExecOptions{Container: "etcd", Command: command, Stdout: true, Stderr: true}, corev1.SchemeGroupVersion)
	if err != nil {
		return nil, err
	}
	u.RawQuery = query.Encode()
	socket, err := remotecommand.NewWebSocketExecutor(config, "GET", u.String())
	if err != nil {
		return nil, err
	}
	spdy, err := remotecommand.NewSPDYExecutor(config, "POST", u)
	if err != nil {
		return nil, err
	}
	return remotecommand.NewFallbackExecutor(socket, spdy, func(err error) bool {
		return httpstream.IsUpgradeFailure(err) || httpstream.IsHTTPSProxyError(err)
	})
}

// limited keeps the beginning of what is written to it.
type limited struct{ bytes.Buffer }

func (l *limited) Write(p []byte) (int, error) {
	l.Buffer.Write(p[:min(len(p), mostOutput-l.Len())])
	return len(p), nil
}

// last is the last line that tells something to people: etcdctl logs to the same stream, as JSON.
func (l *limited) last(code int) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(l.String()), "\n"), func(line string) bool { return strings.HasPrefix(line, "{") })
	if text := strings.Join(lines, "; "); text != "" {
		return text
	}
	return fmt.Sprintf("it ended with %d", code)
}
