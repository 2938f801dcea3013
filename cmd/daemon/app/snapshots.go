package app

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"

	"scute.dev/internal/projection"
	"scute.dev/projector"
)

// snapshots says where and when the daemon's view is saved.
func (d *daemon) snapshots(o LogOptions) projector.Options {
	options := projector.Options{Name: projection.Name, Every: o.SnapshotEvery, Logger: d.logger, Hold: d.owesNews}
	folder := o.Snapshots
	if folder == "" && o.Dir != "" {
		folder = projection.Folder(o.Dir)
	}
	if folder == "" {
		return options
	}
	program, err := program()
	if err != nil {
		d.logger.Warn("no snapshots are used or taken: each start replays the whole log", "error", err)
		return options
	}
	options.Program, options.Snapshot = program, projection.File(folder)
	return options
}

// owesNews says that people are still to be told of something in the view: what is in a snapshot is not told after it.
func (d *daemon) owesNews() bool { return d.remedies != nil && d.remedies.teller.Pending() }

// program is the hash of the running program. A snapshot that another one wrote is not used, so that a change of what an event
// means needs no version that somebody must remember to raise.
func program() (string, error) {
	path, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("finding the running program: %w", err)
	}
	f, err := os.Open(path) //nolint:gosec // the running program
	if err != nil {
		return "", fmt.Errorf("reading the running program: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("reading the running program %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
