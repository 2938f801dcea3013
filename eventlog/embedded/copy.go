package embedded

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// CopyFolder copies the server's files of an embedded log, so that the copy can be examined. It fails with ErrLocked if a process has the log open.
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
