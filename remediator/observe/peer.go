package observe

import (
	"cmp"
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
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/exec"

	"scute.dev/kube/object"
	"scute.dev/view"
)

const (
	// peerTimeout limits one run of etcdctl, including the connection to the pod. ctlTimeout limits
	// how long etcdctl waits for a member.
	peerTimeout = 4 * time.Second
	ctlTimeout  = 2 * time.Second
	// maxPeers limits how many peers are tried if etcdctl cannot run in the pod of one.
	maxPeers = 2
)

// queryPeers queries up to maxParallel listed members that did not respond. It does so by running
// etcdctl in the pod of another member, a peer, that responds through its own node, because the
// kubelet of that node works.
func (d *dialer) queryPeers(ctx context.Context, list []*etcd.Member, answers []answer) {
	var peers []string
	for _, a := range answers {
		if a.answers == object.True && a.route == (route{}) && len(peers) < maxPeers {
			peers = append(peers, a.node)
		}
	}
	if len(peers) == 0 {
		return
	}
	var group errgroup.Group
	left, heard := maxParallel, slices.Clone(answers)
	for i := range answers {
		m := memberNamed(list, heard, answers[i].node)
		if heard[i].responded() || m == nil || clientURL(m) == "" || left == 0 {
			continue
		}
		left--
		group.Go(func() error {
			answers[i] = answers[i].or(d.queryPeer(ctx, peers, m))
			return nil
		})
	}
	_ = group.Wait() // errors are in the answers
}

func (d *dialer) queryPeer(ctx context.Context, peers []string, m *etcd.Member) answer {
	a := answer{node: m.Name, answers: object.Unknown}
	for _, peer := range peers {
		if ctx.Err() != nil {
			a.reason = cmp.Or(a.reason, notQueried)
			break
		}
		a.route = route{peer: peer}
		output, err := d.etcdctl(ctx, peer, clientURL(m), "endpoint", "status", "--write-out=json")
		if err == nil {
			return a.decode(output, m)
		}
		a.reason = fmt.Sprintf("%s: %s", a.route, shorten(err))
		if errors.As(err, new(*exitError)) {
			break // etcdctl ran: another peer would need as long
		}
	}
	return a
}

func (a answer) decode(output []byte, m *etcd.Member) answer {
	var said []struct{ Status *etcd.StatusResponse }
	if err := json.Unmarshal(output, &said); err != nil || len(said) != 1 || said[0].Status == nil {
		a.reason = fmt.Sprintf("%s: its output is not the status of one member", a.route)
		return a
	}
	if id := said[0].Status.Header.GetMemberId(); id != m.ID {
		a.reason = fmt.Sprintf("%s: member %x answers instead of member %x", a.route, id, m.ID)
		return a
	}
	a.reason = ""
	a.setStatus(said[0].Status, ownErrors(said[0].Status.Errors))
	return a
}

// clientURL returns the URL at which peers reach a member, or "" if the member lists none. The
// tenant sets the URL, so scuted must not dial it, and it may only be used in a pod of the tenant.
func clientURL(m *etcd.Member) string {
	for _, text := range m.ClientURLs {
		u, err := url.Parse(text)
		if err != nil || len(text) > maxNameLength || u.Scheme != "https" || strings.Contains(text, ",") {
			continue
		}
		if ip := net.ParseIP(u.Hostname()); ip == nil || !ip.IsUnspecified() {
			return text
		}
	}
	return ""
}

// exitError means that etcdctl ran and failed. It contains the output.
type exitError struct{ output string }

func (e *exitError) Error() string { return e.output }

// etcdctl runs etcdctl in the etcd pod of a node against an endpoint, with the certificates that
// kubeadm mounts there. It returns an exitError if etcdctl ran and failed.
func (d *dialer) etcdctl(ctx context.Context, node, endpoint string, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, d.peer)
	defer cancel()
	const pki = "/etc/kubernetes/pki/etcd/"
	command := append([]string{
		"etcdctl", "--endpoints=" + endpoint, "--cacert=" + pki + "ca.crt", "--cert=" + pki + "server.crt", "--key=" + pki + "server.key",
		"--dial-timeout=" + ctlTimeout.String(), "--command-timeout=" + ctlTimeout.String(),
	}, args...)
	stdout, stderr, err := d.cluster.Exec(ctx, metav1.NamespaceSystem, podOf(node), "etcd", command...)
	var exit exec.CodeExitError
	switch {
	case errors.As(err, &exit):
		return nil, &exitError{output: errorText(stderr, exit.Code)}
	case errors.Is(err, context.DeadlineExceeded):
		return nil, fmt.Errorf("no result within %s", view.Duration(d.peer))
	case err != nil && strings.Contains(err.Error(), "executable file not found"): // as container runtimes report it
		return nil, errors.New("the image of its etcd has no etcdctl")
	default:
		return stdout, err
	}
}

// errorText returns the lines of stderr without the lines of JSON, which are etcdctl's log.
func errorText(stderr []byte, code int) string {
	lines := slices.DeleteFunc(strings.Split(strings.TrimSpace(string(stderr)), "\n"), func(line string) bool { return strings.HasPrefix(line, "{") })
	if text := strings.Join(lines, "; "); text != "" {
		return text
	}
	return fmt.Sprintf("it exited with code %d", code)
}
