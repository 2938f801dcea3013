package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog/seal"
	"scute.dev/internal/atomicfile"
)

// format must change with each change of the format.
const format = "scute.dev/log-backup/v1"

const (
	// ManifestFile describes the contents of a backup.
	ManifestFile = "backup.json"
	// CheckpointsFile contains the newest signed checkpoint at the time of each backup.
	CheckpointsFile = "checkpoints"

	partPrefix, partSuffix = "log-", ".jsonl"
)

// Manifest describes the contents of a backup.
type Manifest struct {
	Format string `json:"format"`
	LogID  string `json:"logID"`
	// CompletedAt is when the last backup into this folder was completed; zero before the first.
	CompletedAt time.Time `json:"completedAt"`
	// Last is the sequence of the last commit, and Stored is when the log stored it.
	Last   uint64    `json:"last"`
	Stored time.Time `json:"stored"`
	// Root is the root of the tree of the commits 1 to Last, as in a checkpoint.
	Root tlog.Hash `json:"root"`
	// MaxBytes is the size at which the log refused new commits.
	MaxBytes int64 `json:"maxBytes"`
	// Parts are the files with the commits, in order.
	Parts []Part `json:"parts"`
}

// Part is a file with commits. It is never changed.
type Part struct {
	File   string `json:"file"`
	First  uint64 `json:"first"`
	Last   uint64 `json:"last"`
	Bytes  int64  `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// Bytes returns the size of all parts.
func (m Manifest) Bytes() (sum int64) {
	for _, p := range m.Parts {
		sum += p.Bytes
	}
	return sum
}

// Checkpoint returns the checkpoint that the commits must match.
func (m Manifest) Checkpoint() seal.Checkpoint {
	return seal.Checkpoint{LogID: m.LogID, Size: m.Last, Root: m.Root}
}

// ErrNotFound is returned if a folder has no completed backup.
var ErrNotFound = errors.New("there is no backup")

// Read reads the manifest in a folder, or returns ErrNotFound if the folder has no completed backup.
func Read(dir string) (Manifest, error) {
	m, err := read(dir)
	if err == nil && m.CompletedAt.IsZero() {
		return Manifest{}, fmt.Errorf("%w in %s: the first backup did not finish; run it again", ErrNotFound, dir)
	}
	return m, err
}

// read reads the manifest in a folder. It also accepts a manifest without a completed backup.
func read(dir string) (Manifest, error) {
	data, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return Manifest{}, fmt.Errorf("%w in %s: it has no file %s", ErrNotFound, dir, ManifestFile)
	}
	if err != nil {
		return Manifest{}, fmt.Errorf("reading the backup: %w", err)
	}
	var m Manifest
	if err := json.Unmarshal(data, &m); err != nil {
		return Manifest{}, fmt.Errorf("reading the backup: %s: %w", filepath.Join(dir, ManifestFile), err)
	}
	if err := m.validate(); err != nil {
		return Manifest{}, fmt.Errorf("reading the backup: %s: %w", filepath.Join(dir, ManifestFile), err)
	}
	return m, nil
}

// validate checks that the parts follow each other and are files of the folder.
func (m Manifest) validate() error {
	if m.Format != format {
		return fmt.Errorf("format is %q: this program reads %s", m.Format, format)
	}
	var last uint64
	for i, p := range m.Parts {
		if p.First != last+1 || p.Last < p.First {
			return fmt.Errorf("parts[%d] has the commits %d to %d: it must begin with %d", i, p.First, p.Last, last+1)
		}
		if p.File != partName(p.First) {
			return fmt.Errorf("parts[%d].file is %q: it must be %s", i, p.File, partName(p.First))
		}
		last = p.Last
	}
	if m.LogID == "" || last != m.Last {
		return fmt.Errorf("logID is %q and last is %d: an ID is required, and the parts end with %d", m.LogID, m.Last, last)
	}
	return nil
}

func (m Manifest) write(dir string) error {
	data, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.WriteBytes(filepath.Join(dir, ManifestFile), append(data, '\n'))
}

// partName returns the name of the part that begins with a sequence. The names sort in the order of
// the commits.
func partName(first uint64) string { return fmt.Sprintf("%s%016d%s", partPrefix, first, partSuffix) }
