package connect

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
)

// podDialer opens the connections of a NATS client to the log in the daemon's pod. It finds the pod
// again for each connection, so that a reconnecting client reaches the daemon in the same pod or in
// a new one.
type podDialer struct {
	open   func(context.Context) (*podConn, error)
	logger *slog.Logger
	ctx    context.Context //nolint:containedctx // the client opens connections without a context
	stop   context.CancelFunc

	mu      sync.Mutex // of the fields below
	first   *podConn   // nil after its use
	lastErr error
}

// newPodDialer opens the first connection, so that errors are reported immediately.
func newPodDialer(ctx context.Context, open func(context.Context) (*podConn, error), logger *slog.Logger) (*podDialer, error) {
	first, err := open(ctx)
	if err != nil {
		return nil, err
	}
	d := &podDialer{open: open, logger: logger, first: first}
	d.ctx, d.stop = context.WithCancel(context.WithoutCancel(ctx))
	return d, nil
}

// Dial implements nats.CustomDialer. The connection is a pipe, because a stream of a port-forward
// has no deadlines. Dial returns before the pod is reached, because the client holds its lock while
// it dials: closing the client, and each request, would wait until the dial ends.
func (d *podDialer) Dial(string, string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	local, pipe := net.Pipe()
	go d.forward(pipe, d.first)
	d.first = nil
	return local, nil
}

// forward connects a pipe to the pod, with the connection remote if it is not nil.
func (d *podDialer) forward(pipe net.Conn, remote *podConn) {
	defer pipe.Close()
	if remote == nil {
		ctx, cancel := context.WithTimeout(d.ctx, CallTimeout)
		defer cancel()
		var err error
		if remote, err = d.open(ctx); err != nil {
			d.recordError(err)
			return
		}
	}
	defer context.AfterFunc(d.ctx, func() { remote.Close() })() // a write to the pod may hang
	go func() {
		_, _ = io.Copy(remote, pipe)
		remote.Close()
	}()
	_, _ = io.Copy(pipe, remote)
	d.recordError(remote.RemoteError())
}

func (d *podDialer) recordError(err error) {
	if err == nil || d.ctx.Err() != nil {
		return
	}
	d.logger.Warn("the connection to the log is lost, retrying", "error", err)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastErr = err
}

// lastError returns the last error of a connection, or of the other side.
func (d *podDialer) lastError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastErr
}
