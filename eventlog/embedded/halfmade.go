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

// tidyStream repairs the stream's files after a crash.
func tidyStream(dir string) error {
	folder := streamFolder(dir)
	return errors.Join(removeIncomplete(folder), repairChecksum(folder))
}

// removeIncomplete removes the folder of a stream whose creation was interrupted by a crash.
//
// The server writes a stream's description and then the description's checksum. If it dies in
// between, the next start ignores the stream. Creating the stream again keeps the old description,
// never writes the checksum, and accepts commits. The following start ignores these commits.
// Without the checksum the creation never completed, so no commit in the folder can have been
// acknowledged. A folder with any data is kept nevertheless.
func removeIncomplete(folder string) error {
	_, err := os.Stat(filepath.Join(folder, checksumFile))
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
			return nil // when the server starts, it reports that the log was damaged
		}
	}
	if err := os.RemoveAll(folder); err != nil {
		return fmt.Errorf("removing the incomplete stream %s: %w", folder, err)
	}
	return nil
}

// The files that contain the description of a stream and the checksum of the description.
const (
	metaFile     = "meta.inf"
	checksumFile = "meta.sum"
)

// repairChecksum writes the checksum of a stream's description if a crash kept the server from
// writing it after a change, because the server would ignore the stream. Both files are replaced
// atomically, so the description is complete. If the description is older than a checksum that does
// not match, it is damaged, and repairChecksum changes nothing.
func repairChecksum(folder string) error {
	meta, err := os.ReadFile(filepath.Join(folder, metaFile)) //nolint:gosec // the log's folder
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	sum, worse := os.ReadFile(filepath.Join(folder, checksumFile)) //nolint:gosec // the log's folder
	if errors.Is(worse, fs.ErrNotExist) {
		return nil
	}
	if err := errors.Join(err, worse); err != nil {
		return err
	}
	want, err := checksumOf(filepath.Base(folder), meta)
	if err != nil || want == string(sum) {
		return err
	}
	described, err := os.Stat(filepath.Join(folder, metaFile))
	if err != nil {
		return err
	}
	summed, err := os.Stat(filepath.Join(folder, checksumFile))
	if err != nil || described.ModTime().Before(summed.ModTime()) {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(folder, checksumFile), []byte(want))
}

// checksumOf computes the checksum of a description as the server does.
func checksumOf(stream string, meta []byte) (string, error) {
	key := sha256.Sum256([]byte(stream))
	h, err := highwayhash.NewDigest64(key[:])
	if err != nil {
		return "", err
	}
	_, _ = h.Write(meta) // never fails
	return hex.EncodeToString(h.Sum(nil)), nil
}
