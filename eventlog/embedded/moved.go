package embedded

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"scute.dev/eventlog"
	"scute.dev/internal/atomicfile"
)

// movedFile exists in the folder of a log that was moved elsewhere. Open refuses the folder, so
// that the log does not continue in two places.
const movedFile = "scute.moved"

// Moved records where the log in a folder was moved to.
type Moved struct {
	LogID string `json:"logID"`
	// Last is the sequence of the last commit that was moved.
	Last uint64 `json:"last"`
	// To is the address of the NATS server that now has the log.
	To   string    `json:"to"`
	Time time.Time `json:"time"`
	// Arrived is set once the log was opened on that server. From then on, the folder may lack later
	// commits.
	Arrived bool `json:"arrived,omitempty"`
}

// ReadMove returns where the log in a folder was moved to. ok is false if it was not moved.
func ReadMove(dir string) (m Moved, ok bool, err error) {
	data, err := os.ReadFile(filepath.Join(dir, movedFile)) //nolint:gosec // the log's folder
	if errors.Is(err, fs.ErrNotExist) {
		return Moved{}, false, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &m)
	}
	if err != nil {
		return Moved{}, false, fmt.Errorf("reading where the log of %s was moved to: %w", dir, err)
	}
	return m, true, nil
}

// RecordMove records that the log in a folder was moved. This process must have the folder open.
func RecordMove(dir string, m Moved) error {
	data, err := json.Marshal(m)
	if err == nil {
		err = atomicfile.WriteBytes(filepath.Join(dir, movedFile), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("recording in %s that its log was moved: %w", dir, err)
	}
	return nil
}

func checkNotMoved(dir string) error {
	m, moved, err := ReadMove(dir)
	if err != nil || !moved {
		return err
	}
	return fmt.Errorf("%w: log %s, to %s at %s; use it there (--nats-url of the daemon, --nats of scutectl). If nothing was ever started there, remove the file %s to use the log here again",
		eventlog.ErrMoved, m.LogID, m.To, m.Time.UTC().Format(time.RFC3339), filepath.Join(dir, movedFile))
}
