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

type folder struct {
	dir       string
	lock      *os.File
	watermark *watermark
	server    *server.Server                         // nil until the server has started
	files     atomic.Pointer[map[string]os.FileInfo] // by path; nil until the log is open
	gate      *gate                                  // nil without an Access
}

var _ eventlog.Host = (*folder)(nil)

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

func (f *folder) InProcessConn() (net.Conn, error) { return f.server.InProcessConn() }

func (f *folder) URL() string {
	if f.server.Addr() == nil {
		return ""
	}
	return f.server.ClientURL()
}

func (f *folder) Acknowledge(seq uint64) { f.watermark.raise(seq) }

// recordFiles records the identity of the files of the open log. If these files are removed, the
// server still acknowledges commits, but no process can ever read them.
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

const idFile = "scute.log-id"

// recordID writes the ID of the log into its folder. If the folder already contains the ID of
// another log, the stream was replaced, and recordID fails with eventlog.ErrMissing. If the new log
// has no commits, it succeeds, because such a log is created again after a crash.
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

const account = "$G"

func streamFolder(dir string) string {
	return filepath.Join(dir, serverFolder, account, "streams", eventlog.StreamName)
}

// CheckFrozen implements eventlog.Host. After a failed write, the server answers no publish until
// it is started again, even if the disk has space again.
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

// probeSize is larger than the largest commit.
const probeSize = 4 << 20

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
