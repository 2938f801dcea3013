package connect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/rest"
	"k8s.io/streaming/pkg/httpstream"
)

// protocol of a port-forward: a pair of streams is a connection; what goes wrong on the other side is told on the
// second stream (k8s.io/client-go/tools/portforward, whose forwarder ends for good at the first refused connection).
const protocol = "portforward.k8s.io"

// connectPod opens one connection to a port of a pod. ctx bounds its making.
func connectPod(ctx context.Context, config *rest.Config, pod *corev1.Pod, port int) (*podConn, error) {
	dialer, err := dial(config, pod)
	if err != nil {
		return nil, err
	}
	type dialed struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan dialed, 1)
	go func() { // a dialer knows no context
		conn, _, err := dialer.Dial(protocol)
		done <- dialed{conn, err}
	}()
	select {
	case d := <-done:
		if d.err != nil {
			return nil, d.err
		}
		return newPodConn(d.conn, port)
	case <-ctx.Done():
		go func() {
			if d := <-done; d.err == nil {
				d.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// podConn is a connection into a pod.
type podConn struct {
	httpstream.Stream // data
	conn              httpstream.Connection
	complaint         chan error // what the other side says when it cannot connect; closed when it says nothing more
}

func newPodConn(conn httpstream.Connection, port int) (_ *podConn, err error) {
	defer func() {
		if err != nil {
			err = errors.Join(err, conn.Close())
		}
	}()
	headers := http.Header{}
	headers.Set(corev1.PortHeader, strconv.Itoa(port))
	headers.Set(corev1.PortForwardRequestIDHeader, "0")
	headers.Set(corev1.StreamType, corev1.StreamTypeError)
	complaints, err := conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("opening the stream for errors: %w", err)
	}
	if err := complaints.Close(); err != nil { // only the other side writes to it
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("opening the stream for data: %w", err)
	}
	p := &podConn{Stream: data, conn: conn, complaint: make(chan error, 1)}
	go func() {
		defer close(p.complaint)
		if text, _ := io.ReadAll(io.LimitReader(complaints, 4096)); len(text) > 0 {
			p.complaint <- errors.New(strings.TrimSpace(string(text)))
			p.Close() // it does not work any more: readers must learn it at once
		}
	}()
	return p, nil
}

// Close ends the connection in both directions.
func (p *podConn) Close() error { return p.conn.Close() }

// Complaint is what the other side says has gone wrong, nil if it ends without a word. It is asked when the data has
// ended, which may be a moment before the word comes.
func (p *podConn) Complaint() error {
	select {
	case err := <-p.complaint:
		return err
	case <-time.After(complaintPatience):
		return nil
	}
}

const complaintPatience = time.Second
