package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
	"scute.dev/internal/atomicfile"
)

// folder is the locked folder of an embedded log, with the server that runs on it.
type folder struct {
	dir       string
	lock      *os.File
	watermark *watermark
	server    *server.Server                         // nil until the server has started
	files     atomic.Pointer[map[string]os.FileInfo] // by path; nil until the log is open
	gate      *gate                                  // nil without an Access
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
		return nil, errors.Join(err, lock.Close())
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

// recordFiles records the identity of the files of the open log: the watermark and the folder of
// the stream's messages. If the files are removed, the server continues to write and acknowledges
// commits that can never be read.
func (f *folder) recordFiles() error {
	infos := make(map[string]os.FileInfo)
	for _, path := range []string{filepath.Join(f.dir, watermarkFile), filepath.Join(streamFolder(f.dir), "msgs")} {
		info, err := os.Stat(path)
		if err != nil {
			return fmt.Errorf("checking the files of the log: %w", err)
		}
		infos[path] = info
	}
	f.files.Store(&infos)
	return nil
}

// CheckIntact returns ErrMissing if the files of the log were removed, moved or replaced while it was open.
func (f *folder) CheckIntact() error {
	infos := f.files.Load()
	if infos == nil {
		return nil
	}
	for path, was := range *infos {
		if info, err := os.Stat(path); err != nil || !os.SameFile(was, info) {
			return fmt.Errorf("%w any longer: %s was removed or replaced while the log was open: "+
				"later events are not recorded, so check what was done before you start again", eventlog.ErrMissing, path)
		}
	}
	return nil
}

func (f *folder) Close() error {
	f.gate.close()
	if f.server != nil {
		f.server.Shutdown()
		f.server.WaitForShutdown()
	}
	return errors.Join(f.watermark.close(), f.lock.Close())
}

// idFile contains the ID of the log in a folder, beside the server's files.
const idFile = "scute.log-id"

// recordID writes the ID of the log into its folder. It returns ErrMissing of package eventlog if
// the folder had another log, because the stream was replaced. A log without commits may replace
// another log, because it is created again after a crash.
func recordID(dir, id string, head uint64) error {
	path := filepath.Join(dir, idFile)
	kept, err := os.ReadFile(path) //nolint:gosec // the log's folder
	switch {
	case errors.Is(err, fs.ErrNotExist), err == nil && head == 0 && string(kept) != id:
		err = atomicfile.WriteBytes(path, []byte(id))
	case err == nil && string(kept) != id:
		return fmt.Errorf("%w: the folder had log %s, and now has log %s: restore the files of the first log, or restore that log from a backup; to continue with the other log, remove %s",
			eventlog.ErrMissing, kept, id, path)
	}
	if err != nil {
		return fmt.Errorf("storing the ID of the log: %w", err)
	}
	return nil
}

// account is the NATS account of the log.
const account = "$G"

// streamFolder returns the folder of the stream.
func streamFolder(dir string) string {
	return filepath.Join(dir, serverFolder, account, "streams", eventlog.StreamName)
}

// CheckFrozen returns ErrFrozen if a write has failed. The embedded server does not answer a
// publish then, until it is started again, even if the disk has space by then.
func (f *folder) CheckFrozen() error {
	health := f.server.Healthz(&server.HealthzOptions{Details: true})
	for _, e := range health.Errors {
		if strings.Contains(e.Error, "write error") {
			return fmt.Errorf("%w since a write to %s failed: %s; free space on the volume, or repair it, and open the log again",
				eventlog.ErrFrozen, f.dir, e.Error)
		}
	}
	return nil
}

// probeSize is the free space that Thawed requires: more than the largest commit.
const probeSize = 4 << 20

// CheckWritable returns nil if the disk accepts writes. It writes a file and removes it.
func (f *folder) CheckWritable() error {
	probe, err := os.CreateTemp(f.dir, "probe-*")
	if err != nil {
		return fmt.Errorf("probing the disk of the log: %w", err)
	}
	_, err = probe.Write(make([]byte, probeSize))
	if err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("probing the disk of the log: %w", err)
	}
	return nil
}
