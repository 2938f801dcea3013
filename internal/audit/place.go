package audit

import (
	"context"
	"errors"
	"fmt"
	"time"

	"scute.dev/eventlog/seal"
)

// Publication is a checkpoint that is published.
type Publication struct {
	seal.Checkpoint
	// Signed is the checkpoint as a signed note, which Key verifies.
	Signed []byte
	Key    seal.PublicKey
	At     time.Time
	Tree   *seal.Tree
}

// Place holds checkpoints out of the reach of who writes to the log.
type Place interface {
	// Name of the place, for people.
	Name() string
	// Last is the newest checkpoint that the place holds, as a signed note; empty if it holds none, or does not tell.
	Last(ctx context.Context) ([]byte, error)
	// Publish adds a checkpoint. ErrInconsistent says that the place refuses it, because it does not continue what the place holds.
	Publish(ctx context.Context, p Publication) error
}

// errInconsistent says that a checkpoint does not continue the one that a place holds, so that it is not published there.
var errInconsistent = errors.New("the log is not consistent with the checkpoint that was published")

// permitted says whether a checkpoint may be published over the one that a place holds, and whether it is the same.
func permitted(p Publication, last []byte) (same bool, err error) {
	if len(last) == 0 {
		return false, nil
	}
	before, err := seal.OpenCheckpoint(last, p.Key)
	switch {
	case errors.Is(err, seal.ErrSignature):
		return false, fmt.Errorf("%w: that one is of another log or another key: %w", errInconsistent, err)
	case err != nil:
		return false, fmt.Errorf("%w: that one cannot be read: %w", errInconsistent, err)
	case before == p.Checkpoint:
		return true, nil
	case before.Size > p.Size:
		return false, fmt.Errorf("%w: that one covers %d commits, the log holds %d: commits were lost", errInconsistent, before.Size, p.Size)
	}
	ok, err := seal.Continues(p.Tree, before, p.Checkpoint)
	if err == nil && !ok {
		err = fmt.Errorf("%w: commits up to %d were changed after they were sealed", errInconsistent, before.Size)
	}
	return false, err
}
