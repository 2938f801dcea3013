package tenant

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/remotecommand"
	"k8s.io/client-go/util/exec"

	"scute.dev/kube/object"
)

// Exec runs a command in a container, and returns the beginning of its output. It returns an
// exec.CodeExitError if the command ran and failed. The command ends with ctx, which must have a
// deadline.
func (c *Cluster) Exec(ctx context.Context, namespace, pod, container string, command ...string) (stdout, stderr []byte, err error) {
	query := url.Values{"container": {container}, "command": command, "stdout": {"true"}, "stderr": {"true"}}
	u, err := c.pod(namespace, pod, "exec", query)
	if err != nil {
		return nil, nil, err
	}
	r := &execResult{}
	conn, err := c.upgrade(ctx, u, remotecommand.StreamProtocolV4Name)
	if err == nil {
		err = r.read(conn)
	}
	switch {
	case err != nil && ctx.Err() != nil:
		err = ctx.Err()
	case err == nil:
		err = r.result()
	}
	return r.stdout.data, r.stderr.data, err
}

type execResult struct{ stdout, stderr, status limited }

func (r *execResult) read(conn io.ReadWriteCloser) error {
	defer conn.Close()
	s, err := newSession(conn)
	if err != nil {
		return err
	}
	var streams []*stream
	for _, one := range []struct {
		kind string
		take func([]byte)
	}{{corev1.StreamTypeError, r.status.write}, {corev1.StreamTypeStdout, r.stdout.write}, {corev1.StreamTypeStderr, r.stderr.write}} {
		opened, err := s.open(one.kind, nil, one.take)
		if err != nil {
			return err
		}
		streams = append(streams, opened)
	}
	for !streams[0].ended || !streams[1].ended || !streams[2].ended {
		if err := s.readFrame(); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return fmt.Errorf("reading the output of the command: %w", err)
		}
	}
	return nil
}

func (r *execResult) result() error {
	var status metav1.Status
	if err := json.Unmarshal(r.status.data, &status); err != nil {
		return errors.New("it is not known how the command ended")
	}
	if status.Status == metav1.StatusSuccess {
		return nil
	}
	if status.Reason == remotecommand.NonZeroExitCodeReason && status.Details != nil {
		for _, cause := range status.Details.Causes {
			if code, err := strconv.ParseUint(cause.Message, 10, 8); err == nil && cause.Type == remotecommand.ExitCodeCauseType {
				return exec.CodeExitError{Err: fmt.Errorf("it exited with code %d", code), Code: int(code)}
			}
		}
	}
	return errors.New(object.Truncate(status.Message, maxShown))
}
