package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// discardHalfMade removes a stream's folder that a death left in the middle of being created.
//
// The server writes a stream's description and then the description's checksum. If it dies in between, the next start
// passes the stream over; creating the stream again then keeps the old description, never writes the checksum, and takes
// commits: all of them are passed over at the start after that. A folder without the checksum was never finished, so no
// commit can have been acknowledged in it; one that holds any data is left alone all the same.
func discardHalfMade(dir, stream string) error {
	folder := filepath.Join(dir, "jetstream", "$G", "streams", stream)
	_, err := os.Stat(filepath.Join(folder, "meta.sum"))
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	entries, err := os.ReadDir(filepath.Join(folder, "msgs"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return err
		}
		if filepath.Ext(e.Name()) == ".blk" && info.Size() > 0 {
			return nil // the start will say that the log was damaged
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the half made stream %s: %w", folder, err)
	}
	return nil
}
