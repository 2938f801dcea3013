package consume

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"scute.dev/internal/atomicfile"
)

// Position is how far a consumer has come: the commits of a log up to a sequence were taken.
type Position struct {
	// LogID is empty at the beginning.
	LogID    string `json:"logID"`
	Sequence uint64 `json:"sequence"`
}

// Store keeps the position of one consumer.
type Store interface {
	// Load returns the position that was saved last; the zero Position if there is none.
	Load(ctx context.Context) (Position, error)
	Save(ctx context.Context, p Position) error
}

// File is a Store in a file, which is replaced whole.
type File string

// Load implements Store.
func (f File) Load(context.Context) (p Position, err error) {
	data, err := os.ReadFile(string(f))
	if errors.Is(err, fs.ErrNotExist) {
		return Position{}, nil
	}
	if err == nil {
		err = json.Unmarshal(data, &p)
	}
	if err != nil {
		return Position{}, fmt.Errorf("reading the position in the log from %s: %w", f, err)
	}
	return p, nil
}

// Save implements Store.
func (f File) Save(_ context.Context, p Position) error {
	data, err := json.Marshal(p)
	if err == nil {
		err = atomicfile.WriteBytes(string(f), append(data, '\n'))
	}
	if err != nil {
		return fmt.Errorf("writing the position in the log to %s: %w", f, err)
	}
	return nil
}
