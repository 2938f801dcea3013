package tenant

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/moby/spdystream/spdy"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/portforward"

	"scute.dev/kube/object"
)

// Forward connects to a port of a pod through the API server and the kubelet. The connection ends
// with ctx, which must have a deadline.
func (c *Cluster) Forward(ctx context.Context, namespace, pod string, port int) (net.Conn, error) {
	u, err := c.pod(namespace, pod, "portforward", nil)
	if err != nil {
		return nil, err
	}
	conn, err := c.upgrade(ctx, u, portforward.PortForwardProtocolV1Name)
	if err != nil {
		return nil, err
	}
	f, err := newForwarded(conn, port)
	if err != nil {
		conn.Close()
		return nil, err
	}
	f.address = address(pod + ":" + strconv.Itoa(port))
	return f, nil
}

// forwarded is a connection to a port of a pod. One goroutine reads, one writes.
type forwarded struct {
	*session
	address     address
	data        *stream
	pending     []byte
	errorOutput limited // of the kubelet
}

func newForwarded(conn io.ReadWriteCloser, port int) (*forwarded, error) {
	s, err := newSession(conn)
	if err != nil {
		return nil, err
	}
	f := &forwarded{session: s}
	header := http.Header{}
	header.Set(corev1.PortHeader, strconv.Itoa(port))
	header.Set(corev1.PortForwardRequestIDHeader, "0")
	complaints, err := s.open(corev1.StreamTypeError, header, f.errorOutput.write)
	if err != nil {
		return nil, err
	}
	if err := s.send(&spdy.DataFrame{StreamId: complaints.id, Flags: spdy.DataFlagFin}); err != nil { // only the peer writes to this stream
		return nil, err
	}
	f.data, err = s.open(corev1.StreamTypeData, header, func(p []byte) { f.pending = append(f.pending, p...) })
	return f, err
}

func (f *forwarded) Read(p []byte) (int, error) {
	for len(f.pending) == 0 {
		if len(f.errorOutput.data) > 0 {
			return 0, errors.New(object.Truncate(string(f.errorOutput.data), maxShown))
		}
		if f.data.ended {
			return 0, io.EOF
		}
		if err := f.readFrame(); err != nil {
			return 0, err
		}
	}
	n := copy(p, f.pending)
	f.pending = f.pending[n:]
	return n, nil
}

func (f *forwarded) Write(p []byte) (int, error) {
	if err := f.send(&spdy.DataFrame{StreamId: f.data.id, Data: p}); err != nil {
		return 0, fmt.Errorf("writing a frame: %w", err)
	}
	return len(p), nil
}

func (f *forwarded) Close() error { return f.conn.Close() }

// LocalAddr returns the pod's name and port, as RemoteAddr does.
func (f *forwarded) LocalAddr() net.Addr  { return f.address }
func (f *forwarded) RemoteAddr() net.Addr { return f.address }

// SetDeadline does nothing, and neither do SetReadDeadline and SetWriteDeadline: the deadline of the connection's
// context applies.
func (f *forwarded) SetDeadline(time.Time) error      { return nil }
func (f *forwarded) SetReadDeadline(time.Time) error  { return nil }
func (f *forwarded) SetWriteDeadline(time.Time) error { return nil }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }
