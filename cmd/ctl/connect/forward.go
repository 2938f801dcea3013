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

// protocol is the protocol of a port-forward. Each connection is a pair of streams, one of which
// carries the errors of the other side. client-go's own forwarder
// (k8s.io/client-go/tools/portforward) is not used, because it stops for good at the first refused
// connection.
const protocol = "portforward.k8s.io"

// dialPod opens a connection to a port of a pod. After the connection is open, ctx has no effect.
func dialPod(ctx context.Context, config *rest.Config, pod *corev1.Pod, port int) (*podConn, error) {
	dialer, err := dial(config, pod)
	if err != nil {
		return nil, err
	}
	type dialed struct {
		conn httpstream.Connection
		err  error
	}
	done := make(chan dialed, 1)
	go func() { // Dial accepts no context
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

type podConn struct {
	httpstream.Stream // data
	conn              httpstream.Connection
	remoteErr         chan error // errors of the other side; closed when there are no more
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
	if err := complaints.Close(); err != nil { // only the other side writes to this stream, so close this direction
		return nil, err
	}
	headers.Set(corev1.StreamType, corev1.StreamTypeData)
	data, err := conn.CreateStream(headers)
	if err != nil {
		return nil, fmt.Errorf("opening the stream for data: %w", err)
	}
	p := &podConn{Stream: data, conn: conn, remoteErr: make(chan error, 1)}
	go func() {
		defer close(p.remoteErr)
		if text, _ := io.ReadAll(io.LimitReader(complaints, 4096)); len(text) > 0 {
			p.remoteErr <- errors.New(strings.TrimSpace(string(text)))
			p.Close() // the connection is broken: unblock readers immediately
		}
	}()
	return p, nil
}

// Close closes the connection in both directions.
func (p *podConn) Close() error { return p.conn.Close() }

// RemoteError returns the error that the other side sent, or nil. Call it at the end of the data.
// It waits for the error, which may arrive slightly later than the data.
func (p *podConn) RemoteError() error {
	select {
	case err := <-p.remoteErr:
		return err
	case <-time.After(remoteErrTimeout):
		return nil
	}
}

const remoteErrTimeout = time.Second
