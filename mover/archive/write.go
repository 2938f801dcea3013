package archive

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"scute.dev/internal/atomicfile"
	"scute.dev/kube/object"
)

// Names in the folder of an archive. SumsFile is written last and makes the folder an archive.
const (
	SumsFile        = "SHA256SUMS"
	IndexFile       = "index.json"
	objectsFolder   = "objects"
	unfinishedFile  = "UNFINISHED"
	encryptedSuffix = ".age"
)

// ErrComplete is returned if the folder already has an archive.
var ErrComplete = errors.New("it already has a complete backup: choose another folder, or delete this one")

// Writer writes an archive. Its methods are safe for concurrent use.
type Writer struct {
	dir        string
	recipients []age.Recipient

	// MaxBytes limits the size on disk; 0 means no limit. Set it before the first Put.
	MaxBytes int64

	mu    sync.Mutex
	sums  map[string]string // by file, relative to the folder
	sizes map[string]int64  // on disk, by file
	used  int64
}

// ErrTooLarge is returned if the files exceed Writer.MaxBytes.
var ErrTooLarge = errors.New("the backup is too large")

// Create starts an archive in a folder, and creates the folder if needed. It discards an unfinished
// archive. Without recipients the archive is in plain text.
func Create(dir string, recipients []age.Recipient) (*Writer, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	there, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	begun, foreign := false, false
	for _, e := range there {
		if e.Name() == SumsFile {
			return nil, fmt.Errorf("folder %s: %w", dir, ErrComplete)
		}
		begun = begun || e.Name() == unfinishedFile
		foreign = foreign || !strings.HasPrefix(e.Name(), unfinishedFile) // a process that died wrote the others
	}
	if foreign && !begun {
		return nil, fmt.Errorf("folder %s is not empty and has no unfinished backup: choose another folder", dir)
	}
	const note = "This backup is not complete. Run the same command again: it starts over in this folder.\n"
	if err := atomicfile.WriteBytes(filepath.Join(dir, unfinishedFile), []byte(note)); err != nil {
		return nil, err
	}
	for _, file := range []string{unfinishedFile, IndexFile, SumsFile} {
		if err := atomicfile.Clean(filepath.Join(dir, file)); err != nil {
			return nil, err
		}
	}
	objects := filepath.Join(dir, objectsFolder)
	if err := os.RemoveAll(objects); err != nil {
		return nil, err
	}
	return &Writer{dir: dir, recipients: recipients, sums: make(map[string]string), sizes: make(map[string]int64)}, os.Mkdir(objects, 0o700)
}

// Put writes an object, and replaces an earlier state of it.
func (w *Writer) Put(u *unstructured.Unstructured) error {
	data, err := json.MarshalIndent(u.Object, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding %s %s: %w", u.GetKind(), u.GetName(), err)
	}
	return w.write(w.File(object.RefOf(u)), append(data, '\n'), w.recipients)
}

// Drop deletes an object that Put wrote.
func (w *Writer) Drop(ref object.Ref) error {
	file := w.File(ref)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.used -= w.sizes[file]
	delete(w.sums, file)
	delete(w.sizes, file)
	return os.Remove(filepath.Join(w.dir, file))
}

// File returns the file of an object, relative to the folder.
func (w *Writer) File(ref object.Ref) string {
	const longest = 200 // most file systems allow 255 bytes, and a file has a suffix while it is written
	name := strings.Join([]string{ref.GroupKind(), ref.Namespace, ref.Name}, "_")
	if len(name) > longest {
		sum := sha256.Sum256([]byte(name))
		name = ref.Kind + "_" + hex.EncodeToString(sum[:])
	}
	name += ".json"
	if len(w.recipients) > 0 {
		name += encryptedSuffix
	}
	return filepath.ToSlash(filepath.Join(objectsFolder, name))
}

// Finish writes the index, reads every file again, and then writes the checksums, which make the
// folder an archive.
func (w *Writer) Finish(index *Index) error {
	if err := index.check(); err != nil {
		return err
	}
	data, err := json.MarshalIndent(index, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the index: %w", err)
	}
	if err := w.write(IndexFile, append(data, '\n'), nil); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, e := range index.Objects {
		if w.sums[e.File] == "" {
			return fmt.Errorf("%s has %s, which was not written: report this as a bug", IndexFile, e.Ref)
		}
	}
	var lines strings.Builder
	for _, file := range slices.Sorted(maps.Keys(w.sums)) {
		sum, err := checksum(filepath.Join(w.dir, filepath.FromSlash(file)))
		if err != nil {
			return err
		}
		if sum != w.sums[file] {
			return fmt.Errorf("%s in %s differs from what was written: another process may be writing there, or the disk may be damaged", file, w.dir)
		}
		fmt.Fprintf(&lines, "%s  %s\n", sum, file) // the format of sha256sum
	}
	if err := atomicfile.WriteBytes(filepath.Join(w.dir, SumsFile), []byte(lines.String())); err != nil {
		return err
	}
	return os.Remove(filepath.Join(w.dir, unfinishedFile))
}

// reserve adds the size of a file to the size of the archive, in whole blocks and with the overhead
// of encryption. It returns ErrTooLarge if the archive would exceed MaxBytes.
func (w *Writer) reserve(file string, data int) error {
	const block, header = 4 << 10, 256
	size := (int64(data) + header*int64(1+len(w.recipients)) + block - 1) / block * block
	w.mu.Lock()
	defer w.mu.Unlock()
	used := w.used + size - w.sizes[file]
	if w.MaxBytes > 0 && used > w.MaxBytes {
		return fmt.Errorf("%w: it needs more than %d MiB", ErrTooLarge, w.MaxBytes>>20)
	}
	w.used, w.sizes[file] = used, size
	return nil
}

func (w *Writer) write(file string, data []byte, recipients []age.Recipient) error {
	if err := w.reserve(file, len(data)); err != nil {
		return err
	}
	sum := sha256.New()
	err := atomicfile.Write(filepath.Join(w.dir, filepath.FromSlash(file)), func(out io.Writer) error {
		out = io.MultiWriter(out, sum)
		if len(recipients) == 0 {
			_, err := out.Write(data)
			return err
		}
		sealed, err := age.Encrypt(out, recipients...)
		if err != nil {
			return err
		}
		if _, err := sealed.Write(data); err != nil {
			return err
		}
		return sealed.Close()
	})
	if err != nil {
		return fmt.Errorf("writing %s: %w", file, err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.sums[file] = hex.EncodeToString(sum.Sum(nil))
	return nil
}

func checksum(path string) (string, error) {
	f, err := os.Open(path) //nolint:gosec // a file of the archive that the user names
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
