package tenant

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// ErrTooLarge is wrapped by the error that ends a connection when it has received more bytes than any response needs.
var ErrTooLarge = errors.New("it sends too much")

const (
	// maxBytes bounds the bytes that are read from one connection, encryption included.
	maxBytes = 512 << 10
	// maxHeader bounds the header of an HTTP response.
	maxHeader = 16 << 10
	// maxOutput bounds the output of a command on one stream, and the status of the command.
	maxOutput = 64 << 10
)

// conn is a connection that ends when its context ends, when it is closed, or when it has received too many bytes.
type conn struct {
	net.Conn
	maxBytes  int64
	remaining atomic.Int64
	stop      func() // stops watching the context
	release   func()
	once      sync.Once
}

func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.remaining.Add(int64(-n)) < 0 {
		_ = c.Close()
		return 0, fmt.Errorf("%w: more than %d KiB on one connection", ErrTooLarge, c.maxBytes>>10)
	}
	return n, err
}

func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.stop()
		c.release()
	})
	return err
}
