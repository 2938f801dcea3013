package projector

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"

	"scute.dev/eventlog"
)

// Hash is SHA-256 over a view's parts. Equal views have the same.
func Hash(v Snapshotter) (string, error) {
	sum := sha256.New()
	err := v.Snapshot(func(part string, data []byte) error { return writePart(sum, part, data) })
	return hexSum(sum), err
}

func hexSum(sum hash.Hash) string { return fmt.Sprintf("%x", sum.Sum(nil)) }

// Difference is how a snapshot and a replay disagree.
type Difference struct {
	Header
	// Hash is that of the snapshot, Replayed that of the view.
	Hash     string
	Replayed string
	// Parts are the names of those that are not the same in both, sorted.
	Parts []string
}

// Verify compares a snapshot with a replay of the log from its first commit to the snapshot's, into an empty view. It looks at a
// snapshot of any program: one that folds or saves something in another way disagrees.
func Verify(ctx context.Context, log Log, path string, v Snapshotter) (*Difference, error) {
	s, err := openFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the snapshot %s: %w", path, err)
	}
	defer s.f.Close()
	head, err := log.Head(ctx)
	if err != nil {
		return nil, err
	}
	if _, err := s.suits(ctx, log, Options{Name: s.View, Program: s.Program}, head); err != nil {
		return nil, fmt.Errorf("the snapshot %s is not used: %w", path, err)
	}
	if err := replay(ctx, log, s.Seq, v); err != nil {
		return nil, err
	}
	d := &Difference{Header: s.Header}
	if d.Replayed, err = Hash(v); err != nil {
		return nil, err
	}
	return d, d.compare(s, v)
}

var errEnough = errors.New("enough")

func replay(ctx context.Context, log Log, until uint64, v View) error {
	err := log.Follow(ctx, 0, func(r eventlog.Record) error {
		if err := v.Apply(r); err != nil {
			return err
		}
		if r.Seq == until {
			return errEnough
		}
		return nil
	})
	if errors.Is(err, errEnough) {
		return nil
	}
	return err
}

func (d *Difference) compare(s *file, v Snapshotter) error {
	sum := sha256.New()
	saved := make(map[string][sha256.Size]byte)
	err := s.each(func(part string, data []byte) error {
		saved[part] = sha256.Sum256(data)
		return writePart(sum, part, data)
	})
	if err != nil {
		return err
	}
	d.Hash = hexSum(sum)
	err = v.Snapshot(func(part string, data []byte) error {
		was, known := saved[part]
		delete(saved, part)
		if now := sha256.Sum256(data); !known || !bytes.Equal(was[:], now[:]) {
			d.Parts = append(d.Parts, part)
		}
		return nil
	})
	d.Parts = slices.Sorted(slices.Values(slices.AppendSeq(d.Parts, maps.Keys(saved))))
	return err
}
