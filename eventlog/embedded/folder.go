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
	dir       string
	lock      *os.File
	watermark *watermark
	server    *server.Server           // nil until the server has started
	files     atomic.Pointer[logFiles] // nil until the log is open
	gate      *gate                    // nil without an Access
}

var _ eventlog.Host = (*folder)(nil)

// acquireFolder creates the folder if it does not exist, locks it, and reads its watermark.
func acquireFolder(dir string) (*folder, error) {
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
	return &folder{dir: dir, lock: lock, watermark: mark}, nil
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

// Acknowledge raises the watermark.
func (f *folder) Acknowledge(seq uint64) { f.watermark.raise(seq) }

// recordFiles records the identity of the files of the open log.
func (f *folder) recordFiles(stream string) error {
	p, err := findLogFiles(f.dir, stream)
	if err == nil {
		f.files.Store(p)
	}
	return err
}

// CheckIntact returns ErrMissing if the files of the log were removed or replaced while it was open.
func (f *folder) CheckIntact() error { return f.files.Load().check() }

// Close stops the server and releases the folder.
func (f *folder) Close() error {
	f.gate.close()
	if f.server != nil {
		f.server.Shutdown()
		f.server.WaitForShutdown()
	}
	return errors.Join(f.watermark.close(), unlock(f.lock))
}
