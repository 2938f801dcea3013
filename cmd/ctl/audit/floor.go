package audit

import (
	"fmt"
	"slices"
	"time"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// from is the floor below which a source is not verified; nil if all of it is.
func (s *source) from() *eventlog.Floor {
	if s.complete {
		return nil
	}
	return s.floor
}

// covered fails if a checkpoint covers nothing that can be verified: to call such a log intact would be wrong.
func (s *source) covered(c seal.Checkpoint) error {
	if f := s.from(); f != nil && c.Size < f.Seq {
		return fmt.Errorf("%w: the newest checkpoint is at %d, and the log is whole from %d on, so nothing of it is verified without the archive: give --archive, or a later checkpoint", eventlog.ErrDropped, c.Size, f.Seq)
	}
	return nil
}

// drops are what a log records of its drops. A floor that it does not record is one that somebody else made: what is below it was lost.
type drops struct {
	catalog *eventlog.Catalog[eventlog.EpochEvent]
	subject string
	facts   []eventlog.EpochsDropped
	seqs    []uint64
}

func newDrops() *drops {
	return &drops{catalog: eventlog.NewEpochCatalog(), subject: eventlog.Drops().Subject()}
}

// take takes the next commit.
func (d *drops) take(m seal.Message) {
	if m.Subject != d.subject {
		return
	}
	r := m.Record()
	_ = d.catalog.Fold(r, func(e eventlog.EpochEvent, _ time.Time) { // what cannot be read records nothing
		if e, ok := e.(eventlog.EpochsDropped); ok {
			d.facts, d.seqs = append(d.facts, e), append(d.seqs, r.Seq)
		}
	})
}

// judge adds to a report what is wrong with a floor.
func (d *drops) judge(f *eventlog.Floor, report *seal.Report) error {
	if f == nil {
		return nil
	}
	sum, err := seal.SumFrom(f)
	if err != nil {
		return err
	}
	below, root := seal.Run{First: 1, Last: f.Seq - 1}, sum.Checkpoint(report.LogID).Root.String()
	at := slices.IndexFunc(d.facts, func(e eventlog.EpochsDropped) bool { return e.Floor == f.Seq })
	if at < 0 {
		report.Findings = append(report.Findings, seal.Finding{Kind: seal.Missing, Run: below, Detail: "no commit of the log records that they were dropped"})
		return nil
	}
	switch e := d.facts[at]; {
	case e.Through != f.Through || e.Root != root || e.Commits != f.Commits || e.Tombstones != f.Tombstones || f.Stream != "" && e.Kept != f.Stream:
		report.Findings = append(report.Findings, seal.Finding{
			Kind: seal.Altered, Run: below, Detail: fmt.Sprintf("what the log says that it keeps of them is not what commit %d records", d.seqs[at]),
		})
	case d.seqs[at] > report.Size:
		report.Notes = append(report.Notes, fmt.Sprintf("commit %d, which records what was dropped, is after the checkpoint and not covered by it", d.seqs[at]))
	}
	return nil
}
