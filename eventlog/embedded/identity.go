package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
	"scute.dev/internal/atomicfile"
)

// idFile contains the ID of the log in a folder, beside the server's files.
const idFile = "scute.log-id"

// recordID writes the ID of the log into its folder. It returns ErrMissing of package eventlog if the folder had another log, because the stream was
// replaced. A log without commits may replace another one, because it is created again after a crash.
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
