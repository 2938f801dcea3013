package connect

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
)

// tunnel is a local address that forwards connections to the log. It looks up the daemon's pod again for each connection, so that a reconnecting
// client finds the daemon in the same pod or in a new one.
type tunnel struct {
	listener net.Listener
	open     func(context.Context) (io.ReadWriteCloser, error)
	logger   *slog.Logger
	ctx      context.Context //nolint:containedctx // lifetime of the tunnel: its connections outlive the call that created it
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu      sync.Mutex
	lastErr error
}

// newTunnel opens the first connection, so that errors are reported immediately, and listens.
func newTunnel(ctx context.Context, enter func(context.Context) (io.ReadWriteCloser, error), logger *slog.Logger) (*tunnel, error) {
	first, err := enter(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		first.Close()
		return nil, fmt.Errorf("opening a local port: %w", err)
	}
	t := &tunnel{listener: listener, open: enter, logger: logger}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.running.Go(func() { t.serve(first) })
	return t, nil
}

func (t *tunnel) address() string { return t.listener.Addr().String() }

// close closes the tunnel and all its connections.
func (t *tunnel) close() {
	t.cancel()
	t.listener.Close()
	t.running.Wait()
}

// serve forwards each local connection. The first one uses the connection that newTunnel has opened.
func (t *tunnel) serve(first io.ReadWriteCloser) {
	defer func() {
		if first != nil {
			first.Close()
		}
	}()
	for {
		local, err := t.listener.Accept()
		if err != nil {
			return
		}
		remote := first
		first = nil
		t.running.Go(func() { t.join(local, remote) })
	}
}

func (t *tunnel) join(local net.Conn, remote io.ReadWriteCloser) {
	defer local.Close()
	if remote == nil {
		ctx, cancel := context.WithTimeout(t.ctx, CallTimeout)
		defer cancel()
		var err error
		if remote, err = t.open(ctx); err != nil {
			t.recordError(err)
			return
		}
	}
	defer remote.Close()
	unhook := context.AfterFunc(t.ctx, func() { local.Close(); remote.Close() })
	defer unhook()
	back := make(chan struct{})
	go func() {
		defer close(back)
		_, _ = io.Copy(local, remote)
		if c, ok := remote.(interface{ RemoteError() error }); ok {
			t.recordError(c.RemoteError())
		}
		local.Close()
	}()
	_, _ = io.Copy(remote, local)
	remote.Close()
	<-back
}

func (t *tunnel) recordError(err error) {
	if err == nil || t.ctx.Err() != nil {
		return
	}
	t.logger.Warn("the connection to the log is lost, retrying", "error", err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.lastErr = err
}

// explain adds the other side's error to err.
func (t *tunnel) explain(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lastErr == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, t.lastErr)
}
