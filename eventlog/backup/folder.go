package backup

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"scute.dev/eventlog/seal"
	"scute.dev/internal/atomicfile"
)

// lockFolder locks the folder for this process, because two backups into one folder would corrupt
// each other. The kernel releases the lock when the process ends.
func lockFolder(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.Open(dir) //nolint:gosec // the caller's folder
	if err != nil {
		return nil, err
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		err = errors.New("another process is writing a backup there: wait until it has ended")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// initFolder writes a manifest without a completed backup into an empty folder. All later files in
// the folder then count as parts of backups. It refuses a folder with any other file, including a
// backup without a manifest, because that may be the only copy of a log.
func initFolder(dir string, m Manifest) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if name := e.Name(); name != lostAndFound && !atomicfile.IsUnfinished(name, ManifestFile) {
			return fmt.Errorf("it has %s, but no %s: name a new or empty folder", name, ManifestFile)
		}
	}
	return m.write(dir)
}

const lostAndFound = "lost+found"

// tidy removes the files of an interrupted backup. It fails if the folder contains files that are
// not part of a backup.
func tidy(dir string, m Manifest) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	var left []string
	for _, e := range entries {
		name := e.Name()
		switch {
		case name == ManifestFile, name == CheckpointsFile, name == seal.HashesFile, name == lostAndFound,
			slices.ContainsFunc(m.Parts, func(p Part) bool { return p.File == name }):
		case isPart(name), atomicfile.IsUnfinished(name, ManifestFile), atomicfile.IsUnfinished(name, CheckpointsFile):
			left = append(left, name)
		default:
			return fmt.Errorf("it has %s, which is not part of a backup: name a new or empty folder", name)
		}
	}
	for _, name := range left {
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

func isPart(name string) bool {
	var first uint64
	_, err := fmt.Sscanf(name, partPrefix+"%d", &first)
	return err == nil && (name == partName(first) || atomicfile.IsUnfinished(name, partName(first)))
}
