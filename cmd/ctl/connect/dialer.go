package connect

import (
	"context"
	"io"
	"log/slog"
	"net"
	"sync"
)

// podDialer opens connections of a NATS client to the log in the daemon's pod. It looks up the pod
// for each connection, so that a client can reconnect to a new pod.
type podDialer struct {
	open   func(context.Context) (*podConn, error)
	logger *slog.Logger
	ctx    context.Context //nolint:containedctx // the client opens connections without a context
	stop   context.CancelFunc

	mu      sync.Mutex // guards first and lastErr
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

// Dial implements nats.CustomDialer. It returns a pipe, because the stream of a port-forward has no
// deadlines. It does not wait until the pod is connected: the client holds its lock while it dials,
// so Close and each request would block.
func (d *podDialer) Dial(string, string) (net.Conn, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	local, pipe := net.Pipe()
	go d.forward(pipe, d.first)
	d.first = nil
	return local, nil
}

// forward connects a pipe to the pod. It uses the connection remote or, if remote is nil, opens
// one.
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
	defer context.AfterFunc(d.ctx, func() { remote.Close() })() // unblocks a write to the pod that hangs
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

func (d *podDialer) lastError() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.lastErr
}
