package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"sync"
	"time"
)

// delayed is a proxy for an API server that adds to every round trip.
type delayed struct {
	listener net.Listener
	behind   string
	oneWay   time.Duration
	conns    sync.WaitGroup
}

// delay starts a proxy for the API server at a URL.
func delay(ctx context.Context, host string, roundTrip time.Duration) (*delayed, error) {
	u, err := url.Parse(host)
	if err != nil {
		return nil, fmt.Errorf("reading the address of the API server: %w", err)
	}
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	d := &delayed{listener: listener, behind: u.Host, oneWay: roundTrip / 2}
	d.conns.Go(func() { d.accept(ctx) })
	return d, nil
}

// host returns the URL of the proxy.
func (d *delayed) host() string { return "https://" + d.listener.Addr().String() }

func (d *delayed) accept(ctx context.Context) {
	for {
		conn, err := d.listener.Accept()
		if err != nil {
			return
		}
		d.conns.Go(func() {
			defer conn.Close()
			server, err := new(net.Dialer).DialContext(ctx, "tcp", d.behind)
			if err != nil {
				return
			}
			defer server.Close()
			defer context.AfterFunc(ctx, func() { conn.Close(); server.Close() })()
			var both sync.WaitGroup
			both.Go(func() { d.copy(server, conn) })
			both.Go(func() { d.copy(conn, server) })
			both.Wait()
		})
	}
}

// copy forwards data, each piece oneWay after it arrived.
func (d *delayed) copy(to, from net.Conn) {
	type piece struct {
		due  time.Time
		data []byte
	}
	pieces := make(chan piece, 1024)
	var reading sync.WaitGroup
	reading.Go(func() {
		defer close(pieces)
		for {
			data := make([]byte, 32<<10)
			n, err := from.Read(data)
			if n > 0 {
				pieces <- piece{time.Now().Add(d.oneWay), data[:n]}
			}
			if err != nil {
				return
			}
		}
	})
	failed := false
	for p := range pieces {
		time.Sleep(time.Until(p.due))
		if !failed {
			_, err := to.Write(p.data)
			if failed = err != nil; failed {
				from.Close()
			}
		}
	}
	reading.Wait()
	to.Close()
}

// close closes the listener. Its connections end with ctx, or with their client.
func (d *delayed) close() error {
	err := d.listener.Close()
	if errors.Is(err, net.ErrClosed) || errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
