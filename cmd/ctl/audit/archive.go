package audit

import (
	"context"
	"errors"
	"fmt"

	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/export"
	"scute.dev/eventlog/seal"
)

// completeWith reads the commits below the floor of the source in an archive. What the log has kept of them must be what the archive
// has. live hands over what the log has, tombstones too.
func (s *source) completeWith(archive string, live func(ctx context.Context, fn func(seal.Message) error) error) error {
	m, err := backup.Read(archive)
	if err != nil {
		return err
	}
	floor := s.floor.Seq
	switch {
	case m.LogID != s.logID:
		return fmt.Errorf("%s is an archive of log %s, this is log %s: name the archive of this log", archive, m.LogID, s.logID)
	case m.Last < floor-1:
		return fmt.Errorf("the archive in %s ends with commit %d, and the log is whole from %d on: name the archive that was given when its epochs were dropped", archive, m.Last, floor)
	}
	s.where, s.complete = s.where+" and "+archive, true
	s.each = func(ctx context.Context, fn func(seal.Message) error) error {
		kept, archived := newRemains(), false
		err := live(ctx, func(message seal.Message) error {
			if message.Seq < floor {
				kept.add(message)
				return nil
			}
			if !archived {
				archived = true
				if err := s.archived(ctx, archive, m, floor, kept, fn); err != nil {
					return err
				}
			}
			return fn(message)
		})
		if err == nil && !archived {
			err = s.archived(ctx, archive, m, floor, kept, fn)
		}
		return err
	}
	return nil
}

// errFloor ends the reading of an archive.
var errFloor = errors.New("the floor")

// archived hands over the commits of an archive below a floor.
func (s *source) archived(ctx context.Context, archive string, m backup.Manifest, floor uint64, kept *remains, fn func(seal.Message) error) error {
	err := backup.Each(ctx, archive, m, func(l export.Line) error {
		message := seal.MessageOfLine(l)
		if message.Seq >= floor {
			return errFloor
		}
		kept.compare(message)
		return fn(message)
	}, func(problem error) error {
		s.unreadable = append(s.unreadable, problem.Error())
		return nil
	})
	s.findings = append(s.findings, kept.findings()...)
	if errors.Is(err, errFloor) {
		return nil
	}
	return err
}
