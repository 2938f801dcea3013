package connect

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"sync"
)

// tunnel is an address of this machine that leads to the log. Each connection to it gets a new way, which is looked for
// again: so a client that connects again finds the daemon again, in the same pod or the next one.
type tunnel struct {
	listener net.Listener
	enter    func(context.Context) (io.ReadWriteCloser, error)
	logger   *slog.Logger
	ctx      context.Context //nolint:containedctx // the life of the tunnel: its connections outlast the call that made it
	cancel   context.CancelFunc
	running  sync.WaitGroup

	mu        sync.Mutex
	complaint error
}

// newTunnel finds the way once, so that an obstacle is reported at once, and listens.
func newTunnel(ctx context.Context, enter func(context.Context) (io.ReadWriteCloser, error), logger *slog.Logger) (*tunnel, error) {
	first, err := enter(ctx)
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		first.Close()
		return nil, fmt.Errorf("opening a port of this machine: %w", err)
	}
	t := &tunnel{listener: listener, enter: enter, logger: logger}
	t.ctx, t.cancel = context.WithCancel(context.WithoutCancel(ctx))
	t.running.Go(func() { t.serve(first) })
	return t, nil
}

func (t *tunnel) address() string { return t.listener.Addr().String() }

// close ends the tunnel and every connection through it.
func (t *tunnel) close() {
	t.cancel()
	t.listener.Close()
	t.running.Wait()
}

// serve joins each connection with a way; the first way is there already.
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
		if remote, err = t.enter(ctx); err != nil {
			t.complain(err)
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
		if c, ok := remote.(interface{ Complaint() error }); ok {
			t.complain(c.Complaint())
		}
		local.Close()
	}()
	_, _ = io.Copy(remote, local)
	remote.Close()
	<-back
}

func (t *tunnel) complain(err error) {
	if err == nil || t.ctx.Err() != nil {
		return
	}
	t.logger.Warn("the way to the log is broken, trying again", "error", err)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.complaint = err
}

// explain adds to an error what the other side of the tunnel said.
func (t *tunnel) explain(err error) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.complaint == nil {
		return err
	}
	return fmt.Errorf("%w: %w", err, t.complaint)
}
