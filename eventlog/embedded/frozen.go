package embedded

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/nats-io/nats-server/v2/server"

	"scute.dev/eventlog"
)

// CheckFrozen returns ErrFrozen if a write has failed. The embedded server does not answer a publish then, until it is started again, even if the disk
// has space by then.
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
	_, err = io.CopyN(probe, zeros{}, probeSize)
	if err = errors.Join(err, probe.Sync(), probe.Close(), os.Remove(probe.Name())); err != nil {
		return fmt.Errorf("probing the disk of the log: %w", err)
	}
	return nil
}

// zeros is an endless reader of zero bytes.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
