package embedded

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
)

// folder is the locked folder of an embedded log, with the server that runs on it.
type folder struct {
	dir    string
	lock   *os.File
	mark   *watermark
	server *server.Server        // nil until the server has started
	place  atomic.Pointer[place] // nil until the log is open
	gate   *gate                 // nil without an Access
}

var _ eventlog.Host = (*folder)(nil)

// takeFolder creates the folder if it does not exist, locks it, and reads its watermark.
func takeFolder(dir string) (*folder, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	lock, err := lockFolder(dir)
	if err != nil {
		return nil, err
	}
	mark, err := openWatermark(filepath.Join(dir, watermarkFile))
	if err != nil {
		return nil, errors.Join(err, unlock(lock))
	}
	return &folder{dir: dir, lock: lock, mark: mark}, nil
}

// InProcessConn returns a connection to the server that needs no listener.
func (f *folder) InProcessConn() (net.Conn, error) { return f.server.InProcessConn() }

// URL returns the address for other processes, or "" if the server does not listen.
func (f *folder) URL() string {
	if f.server.Addr() == nil {
		return ""
	}
	return f.server.ClientURL()
}

// Acknowledged raises the watermark.
func (f *folder) Acknowledged(seq uint64) { f.mark.raise(seq) }

// remember records the identity of the files of the open log.
func (f *folder) remember(stream string) error {
	p, err := findPlace(f.dir, stream)
	if err == nil {
		f.place.Store(p)
	}
	return err
}

// Intact returns ErrMissing if the files of the log were removed or replaced while it was open.
func (f *folder) Intact() error { return f.place.Load().check() }

// Close stops the server and releases the folder.
func (f *folder) Close() error {
	f.gate.close()
	if f.server != nil {
		f.server.Shutdown()
		f.server.WaitForShutdown()
	}
	return errors.Join(f.mark.close(), unlock(f.lock))
}
