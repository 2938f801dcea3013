package archive

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// Files returns the paths of the files of a complete archive, relative to its folder, with slashes.
// SumsFile is last.
func Files(dir string) ([]string, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	files := slices.Sorted(maps.Keys(f.sums))
	for _, file := range files {
		if !IsFile(file) {
			return nil, fmt.Errorf("%w: %s names %q, which is not a file of a backup", ErrDamaged, SumsFile, file)
		}
	}
	return append(files, SumsFile), nil
}

// IsFile reports whether a path, relative to the folder of an archive and with slashes, may be a
// file of the archive.
func IsFile(name string) bool {
	if name == SumsFile || name == IndexFile {
		return true
	}
	const longest = 255 // the limit of most file systems
	object, ok := strings.CutPrefix(name, objectsFolder+"/")
	return ok && len(object) <= longest && !strings.ContainsAny(object, `/\`) && filepath.IsLocal(object) &&
		(strings.HasSuffix(object, ".json") || strings.HasSuffix(object, ".json"+encryptedSuffix))
}

// Head contains the fields at the beginning of an index.
type Head struct {
	ID      string
	TakenAt time.Time
}

// ReadHead reads only the beginning of an index. It returns ErrDamaged if the data does not begin
// like an index.
func ReadHead(index io.Reader) (Head, error) {
	const longest = 64 << 10 // bytes
	data, err := io.ReadAll(io.LimitReader(index, longest))
	if err != nil {
		return Head{}, fmt.Errorf("reading %s: %w", IndexFile, err)
	}
	head, err := decodeHead(json.NewDecoder(bytes.NewReader(data)))
	if err != nil {
		return Head{}, fmt.Errorf("%w: %s does not begin with an ID and a time", ErrDamaged, IndexFile)
	}
	return head, nil
}

func decodeHead(d *json.Decoder) (head Head, err error) {
	start, err := d.Token()
	if err != nil {
		return head, err
	}
	if start != json.Delim('{') {
		return head, ErrDamaged
	}
	for head.ID == "" || head.TakenAt.IsZero() {
		key, err := d.Token()
		if err != nil {
			return head, err
		}
		var into any = new(any)
		switch key {
		case "id":
			into = &head.ID
		case "takenAt":
			into = &head.TakenAt
		}
		if err := d.Decode(into); err != nil {
			return head, err
		}
	}
	return head, nil
}
