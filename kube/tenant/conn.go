package tenant

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
)

// ErrTooMuch is the cause of the error with which a connection ends that brings in more than any answer needs.
var ErrTooMuch = errors.New("it sends too much")

const (
	// mostBytes of one connection are read, encryption included.
	mostBytes = 512 << 10
	// mostHeader bounds the header of an HTTP response.
	mostHeader = 16 << 10
	// mostOutput bounds what a command prints on one stream, and what is said about it.
	mostOutput = 64 << 10
)

// conn is a connection that ends: when its context does, when it is closed, or when too much has come in.
type conn struct {
	net.Conn
	most  int64
	left  atomic.Int64
	stop  func() // the watch over its context
	leave func()
	once  sync.Once
}

// Read reads on, up to the limit.
func (c *conn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.left.Add(int64(-n)) < 0 {
		_ = c.Close()
		return 0, fmt.Errorf("%w: more than %d KiB on one connection", ErrTooMuch, c.most>>10)
	}
	return n, err
}

// Close ends the connection and gives its place back.
func (c *conn) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() {
		c.stop()
		c.leave()
	})
	return err
}
