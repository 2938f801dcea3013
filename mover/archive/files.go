package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// SumsFile is written last, and makes a folder an archive; IndexFile says what is in it.
const (
	SumsFile  = sumsFile
	IndexFile = indexFile
)

// Files are the files of a complete archive, relative to its folder, with slashes; the list of checksums is the last.
func Files(dir string) ([]string, error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	files := slices.Sorted(maps.Keys(f.sums))
	for _, file := range files {
		if !IsFile(file) {
			return nil, fmt.Errorf("%w: %s names %q, which no backup has", ErrDamaged, sumsFile, file)
		}
	}
	return append(files, sumsFile), nil
}

// IsFile says whether an archive can have a file of this name, relative to its folder, with slashes.
func IsFile(name string) bool {
	if name == sumsFile || name == indexFile {
		return true
	}
	object, ok := strings.CutPrefix(name, objectsFolder+"/")
	return ok && !strings.ContainsAny(object, `/\`) && filepath.IsLocal(object) &&
		(strings.HasSuffix(object, ".json") || strings.HasSuffix(object, ".json"+encrypted))
}

// Head is the beginning of an index.
type Head struct {
	ID      string
	TakenAt time.Time
}

// ReadHead reads the beginning of an index, and no more than that.
func ReadHead(index io.Reader) (head Head, err error) {
	d := json.NewDecoder(index)
	broken := errors.New(indexFile + " does not begin with an ID and a time")
	if start, err := d.Token(); err != nil || start != json.Delim('{') {
		return head, broken
	}
	for head.ID == "" || head.TakenAt.IsZero() {
		key, err := d.Token()
		if err != nil {
			return Head{}, broken
		}
		var into any = new(any)
		switch key {
		case "id":
			into = &head.ID
		case "takenAt":
			into = &head.TakenAt
		}
		if err := d.Decode(into); err != nil {
			return Head{}, broken
		}
	}
	return head, nil
}
