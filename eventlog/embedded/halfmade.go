package embedded

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/minio/highwayhash"

	"scute.dev/internal/atomicfile"
)

// tidyStream repairs the files of the stream after a crash in the middle of a change.
func tidyStream(dir, stream string) error {
	folder := filepath.Join(dir, serverFolder, account, "streams", stream)
	return errors.Join(discardHalfMade(folder), describe(folder))
}

// discardHalfMade removes a stream's folder that a death left in the middle of being created.
//
// The server writes a stream's description and then the description's checksum. If it dies in between, the next start
// passes the stream over; creating the stream again then keeps the old description, never writes the checksum, and takes
// commits: all of them are passed over at the start after that. A folder without the checksum was never finished, so no
// commit can have been acknowledged in it; one that holds any data is left alone all the same.
func discardHalfMade(folder string) error {
	_, err := os.Stat(filepath.Join(folder, sumFile))
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

// The description of a stream, and its checksum.
const (
	metaFile = "meta.inf"
	sumFile  = "meta.sum"
)

// describe writes the checksum of a stream's description again, if a death came between the two when the stream was changed: the
// server would pass the stream over. Each of the files is replaced at once, so the description is whole. A description that is
// older than a checksum which is not its own was damaged, and is left alone.
func describe(folder string) error {
	meta, err := os.ReadFile(filepath.Join(folder, metaFile)) //nolint:gosec // the log's own folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	sum, worse := os.ReadFile(filepath.Join(folder, sumFile)) //nolint:gosec // the log's own folder
	if errors.Is(worse, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, worse); err != nil {
		return err
	}
	want, err := sumOf(filepath.Base(folder), meta)
	if err != nil || want == string(sum) {
		return err
	}
	described, err := os.Stat(filepath.Join(folder, metaFile))
	if err != nil {
		return err
	}
	summed, err := os.Stat(filepath.Join(folder, sumFile))
	if err != nil || described.ModTime().Before(summed.ModTime()) {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(folder, sumFile), []byte(want))
}

// sumOf computes the checksum of a description as the server does.
func sumOf(stream string, meta []byte) (string, error) {
	key := sha256.Sum256([]byte(stream))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return "", err
	}
	_, _ = h.Write(meta) // never fails
	return hex.EncodeToString(h.Sum(nil)), nil
}
