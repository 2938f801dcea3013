package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"scute.dev/eventlog/seal"
)

// own takes the folder for this process: two backups into one folder would spoil each other. The kernel frees it when the
// process ends.
func own(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(dir) //nolint:gosec // the caller's own folder
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another process writes a backup there: wait until it has ended")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// tidy removes what a backup that did not end has left behind, and refuses a folder that is used for something else.
func tidy(dir string, m Manifest) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		name := e.Name()
		switch {
		case isPart(name):
			if slices.ContainsFunc(m.Parts, func(p Part) bool { return p.File == name }) {
				continue
			}
			if err := os.Remove(filepath.Join(dir, name)); err != nil {
				return err
			}
		case name == seal.HashesFile, strings.HasPrefix(name, ManifestFile), strings.HasPrefix(name, CheckpointsFile), name == "lost+found":
		default:
			return fmt.Errorf("it has %s, which is not of a backup: name a new or empty folder", name)
		}
	}
	return nil
}
