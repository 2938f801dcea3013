package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CopyFolder copies what the server has written to the folder of an embedded log, so that the copy can be examined. No process may
// have the log open: it fails with ErrLocked.
func CopyFolder(dir, to string) error {
	lock, err := lockToRead(dir)
	if err != nil {
		return fmt.Errorf("copying the event log: %w", err)
	}
	err = os.CopyFS(filepath.Join(to, serverFolder), os.DirFS(filepath.Join(dir, serverFolder)))
	if err = errors.Join(err, unlock(lock)); err != nil {
		return fmt.Errorf("copying the event log in %s: %w", dir, err)
	}
	return nil
}

// serverFolder is the folder of the server's files.
const serverFolder = "jetstream"
