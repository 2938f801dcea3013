package archive

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"filippo.io/age"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utiljson "k8s.io/apimachinery/pkg/util/json"

	"scute.dev/kube/object"
)

// ErrIncomplete is returned if a folder has no complete archive.
var ErrIncomplete = errors.New("it has no complete backup")

// ErrDamaged is returned if an archive differs from what was written.
var ErrDamaged = errors.New("the backup is damaged")

// ErrIdentity is returned if no identity can decrypt the archive.
var ErrIdentity = errors.New("none of the identities can decrypt it: set --identity-file to a file with the private key of one of its recipients")

// Archive is an archive that was read and verified.
type Archive struct {
	Index *Index

	read func(ref object.Ref) (*unstructured.Unstructured, error)
}

// Object returns an object of the index.
func (a *Archive) Object(ref object.Ref) (*unstructured.Unstructured, error) {
	u, err := a.read(ref)
	return u, withRemedy(err)
}

func withRemedy(err error) error {
	if errors.Is(err, ErrDamaged) {
		return fmt.Errorf("%w: use another copy of the backup, or an older one", err)
	}
	return err
}

// Open reads the archive in a folder. It compares each file with its checksum, and each decrypted
// object with the index. For a folder that clusterctl wrote, which has neither, it compares
// nothing.
func Open(dir string, identities []age.Identity) (*Archive, error) {
	a, err := open(dir, identities)
	return a, withRemedy(err)
}

func open(dir string, identities []age.Identity) (*Archive, error) {
	if files, err := listClusterctlFiles(dir); err != nil || len(files) > 0 {
		if err != nil {
			return nil, err
		}
		return openClusterctl(dir, files)
	}
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	index, err := f.index()
	if err != nil {
		return nil, err
	}
	entries := make(map[object.Ref]Entry, len(index.Objects))
	for _, e := range index.Objects {
		entries[e.Ref] = e
	}
	a := &Archive{Index: index, read: func(ref object.Ref) (*unstructured.Unstructured, error) {
		return f.object(entries[ref], identities)
	}}
	for _, e := range index.Objects {
		if _, err := a.read(e.Ref); err != nil {
			return nil, err
		}
	}
	return a, nil
}

// folder is the folder of an archive. It verifies the checksum of a file at each read, because
// files may be damaged during a restore, which takes long.
type folder struct {
	dir  string
	sums map[string]string
}

func openFolder(dir string) (folder, error) {
	list, err := os.ReadFile(filepath.Join(dir, SumsFile)) //nolint:gosec // the archive that the user names
	if errors.Is(err, os.ErrNotExist) {
		return folder{}, fmt.Errorf("folder %s: %w: file %s, which is written last, is missing", dir, ErrIncomplete, SumsFile)
	}
	if err != nil {
		return folder{}, err
	}
	sums, err := parseSums(list)
	return folder{dir, sums}, err
}

func (f folder) read(file string) ([]byte, error) {
	if f.sums[file] == "" {
		return nil, fmt.Errorf("%w: %s does not name %q", ErrDamaged, SumsFile, file)
	}
	if !filepath.IsLocal(filepath.FromSlash(file)) {
		return nil, fmt.Errorf("%w: %s names %q, which is outside of the folder", ErrDamaged, SumsFile, file)
	}
	data, err := os.ReadFile(filepath.Join(f.dir, filepath.FromSlash(file))) //nolint:gosec // in the archive that the user names
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: file %s is missing", ErrDamaged, file)
	}
	if err != nil {
		return nil, err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != f.sums[file] {
		return nil, fmt.Errorf("%w: the checksum of %s differs from the one in %s", ErrDamaged, file, SumsFile)
	}
	return data, nil
}

func (f folder) index() (*Index, error) {
	data, err := f.read(IndexFile)
	if err != nil {
		return nil, err
	}
	index := &Index{}
	if err := utiljson.Unmarshal(data, index); err != nil {
		return nil, fmt.Errorf("%w: reading %s: %w", ErrDamaged, IndexFile, err)
	}
	if len(f.sums) != len(index.Objects)+1 {
		return nil, fmt.Errorf("%w: %s names %d files, and %s has %d objects", ErrDamaged, SumsFile, len(f.sums), IndexFile, len(index.Objects))
	}
	if err := index.check(); err != nil {
		return nil, err
	}
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(new(Index)); err != nil { // a restore would ignore a fact, for example that an object stays paused
		return nil, fmt.Errorf("%s: %s: another version of scute wrote the backup, restore it with that version", IndexFile,
			strings.TrimPrefix(err.Error(), "json: "))
	}
	return index, nil
}

func parseSums(list []byte) (map[string]string, error) {
	sums := make(map[string]string)
	for line := range strings.Lines(string(list)) {
		sum, file, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "  ")
		if !ok || !strings.HasSuffix(line, "\n") || sum == "" || file == "" || sums[file] != "" {
			return nil, fmt.Errorf("%w: %s cannot be read", ErrDamaged, SumsFile)
		}
		sums[file] = sum
	}
	return sums, nil
}

func (f folder) object(e Entry, identities []age.Identity) (*unstructured.Unstructured, error) {
	data, err := f.read(e.File)
	if err != nil {
		return nil, err
	}
	if strings.HasSuffix(e.File, encryptedSuffix) {
		if data, err = decrypt(data, identities); err != nil {
			return nil, fmt.Errorf("%s: %w", e.File, err)
		}
	}
	u := &unstructured.Unstructured{}
	if err := utiljson.Unmarshal(data, &u.Object); err != nil {
		return nil, fmt.Errorf("%w: %s contains no object", ErrDamaged, e.File) // the cause may quote a key
	}
	if object.RefOf(u) != e.Ref || u.GetUID() != e.UID || u.GetResourceVersion() != e.ResourceVersion || u.GroupVersionKind().Version != e.Version {
		return nil, fmt.Errorf("%w: %s contains an object that differs from the index: %s with UID %s", ErrDamaged, e.File, object.RefOf(u), u.GetUID())
	}
	return u, nil
}

func decrypt(data []byte, identities []age.Identity) ([]byte, error) {
	if len(identities) == 0 {
		return nil, errors.New("it is encrypted: set --identity-file to the file with the private key")
	}
	plain, err := age.Decrypt(bytes.NewReader(data), identities...)
	var none *age.NoIdentityMatchError
	if errors.As(err, &none) {
		return nil, ErrIdentity
	}
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	if data, err = io.ReadAll(plain); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrDamaged, err)
	}
	return data, nil
}
