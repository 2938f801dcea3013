package drop

import (
	"context"
	"fmt"
	"path/filepath"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/seal"
)

// Judge is a view of the log that says what has not ended. It takes commits in as they come.
type Judge interface {
	Apply(r eventlog.Record) error
	// Stays says that the commits of an aggregate stay: it has not ended, or that cannot be told.
	Stays(a eventlog.Aggregate) bool
	// Hash is the same for views of which nothing differs.
	Hash() (string, error)
}

// Plan is what a drop would do.
type Plan struct {
	LogID   string           `json:"logID"`
	Through int              `json:"through"`
	Epochs  []eventlog.Epoch `json:"epochs"`
	// Floor is the first sequence from which on the log will be whole.
	Floor uint64 `json:"floor"`
	// Dropped commits are those that the log has now and will not have any more.
	Dropped uint64 `json:"dropped"`
	// Kept commits are those of what has not ended, and Objects how many objects of each kind these are.
	Kept    uint64                `json:"kept"`
	Objects map[eventlog.Kind]int `json:"objects"`
	// Tombstones are the last commits of everything else, without what is in them.
	Tombstones uint64 `json:"tombstones"`
	// Bytes is what the epochs take, and KeptBytes about what is kept of them will.
	Bytes     uint64            `json:"bytes"`
	KeptBytes uint64            `json:"keptBytes"`
	Archive   eventlog.Archived `json:"archive"`

	log    *eventlog.Log
	judge  Judge
	last   map[eventlog.Aggregate]uint64
	floor  eventlog.Floor
	root   tlog.Hash
	digest tlog.Hash
	// archived is the root of the log's tree of as many commits as the archive has.
	archived tlog.Hash
	tell     Progress
}

// Progress is told how far something is; nil tells nobody.
type Progress func(doing string, seq, last uint64)

func (p Progress) say(doing string, seq, last uint64) {
	if p != nil {
		p(doing, seq, last)
	}
}

const remedy = "back the log up into it now (backup log), and run this again; nothing was changed"

// branched is an archive that has everything which is dropped, and that no backup of this log could continue: the log would have no backup any more, because
// a new one lacks what was dropped.
const branched = "the archive is of a copy of this log that was continued in another way, and a backup of this log could not continue it; back the log up into another folder, and name that; nothing was changed"

// Prepare decides what a drop of the first epochs of a log does, and refuses one of epochs that are not in the archive in a folder as they are in
// the log. It changes nothing, but ends a closing or a drop that began before. It reads the archive once, the epochs twice, and what the archive has beyond them, and keeps about 100 bytes for each aggregate that they have.
func Prepare(ctx context.Context, log *eventlog.Log, archive string, through int, judge func() Judge, tell Progress) (*Plan, error) {
	p := &Plan{LogID: log.ID(), Through: through, Objects: make(map[eventlog.Kind]int), log: log, tell: tell, last: make(map[eventlog.Aggregate]uint64)}
	if err := log.Droppable(ctx, through); err != nil {
		return nil, fmt.Errorf("dropping the epochs of the log up to %d: %w", through, err)
	}
	epochs, err := log.Epochs(ctx)
	if err != nil {
		return nil, err
	}
	for _, e := range epochs {
		if e.Number <= through {
			p.Epochs, p.Floor, p.Bytes = append(p.Epochs, e), e.Last+1, p.Bytes+e.Bytes
		}
	}
	m, err := p.manifest(ctx, archive)
	if err != nil {
		return nil, err
	}
	if err := p.read(ctx, judge(), m.Last); err != nil {
		return nil, fmt.Errorf("reading the epochs: %w", err)
	}
	if err := p.compare(ctx, archive, m); err != nil {
		return nil, err
	}
	if err := p.choose(ctx, judge()); err != nil {
		return nil, fmt.Errorf("choosing what is kept of the epochs: %w", err)
	}
	return p, nil
}

// manifest reads what the archive says that it has, which is enough to refuse most of those that lack something.
func (p *Plan) manifest(ctx context.Context, archive string) (backup.Manifest, error) {
	m, err := backup.Read(archive)
	if err != nil {
		return m, fmt.Errorf("%w: %s", err, remedy)
	}
	head, err := p.log.Head(ctx)
	switch {
	case err != nil:
		return m, err
	case m.LogID != p.LogID:
		return m, fmt.Errorf("%s is an archive of log %s, this is log %s: name the archive of this log, or an empty folder and %s", archive, m.LogID, p.LogID, remedy)
	case m.Last < p.Floor-1:
		return m, fmt.Errorf("the archive in %s ends with commit %d, epoch %d with %d: %s", archive, m.Last, p.Through, p.Floor-1, remedy)
	case m.Last > head:
		return m, fmt.Errorf("the archive in %s ends with commit %d, the log with %d: %s", archive, m.Last, head, branched)
	}
	p.Archive = eventlog.Archived{Last: m.Last, Root: m.Root.String(), Taken: m.Taken}
	return m, nil
}

// read reads the epochs as the log has them: what has not ended by their end, the last commit of everything, and the tree. It reads on to the last
// commit of the archive, for the tree there.
func (p *Plan) read(ctx context.Context, judge Judge, last uint64) error {
	before := p.log.Floor()
	sum, err := seal.SumFrom(before)
	if err != nil {
		return err
	}
	below := p.log.Below()
	var opened eventlog.Record
	until := max(p.Floor, last)
	err = p.log.Remains(ctx, until, func(r eventlog.Record) error {
		p.tell.say("reading", r.Seq, until)
		if !r.Dropped() && r.Seq <= p.Floor {
			_ = judge.Apply(r) // what it cannot follow stays
		}
		if r.Seq == p.Floor {
			opened = r
			p.root = sum.Checkpoint(p.LogID).Root
			p.floor = eventlog.Floor{Through: p.Through, Seq: p.Floor, Edge: sum.Edge()}
		}
		if r.Seq < p.Floor {
			p.last[r.Aggregate] = r.Seq
		}
		if r.Seq > below && r.Seq <= last {
			sum.Add(seal.MessageOf(r))
		}
		return nil
	})
	if err != nil {
		return err
	}
	if _, ok := opened.OpensEpoch(); !ok {
		return fmt.Errorf("commit %d is not the one that opens epoch %d: the closing of epoch %d has not ended; start the daemon once, or run this again", p.Floor, p.Through+1, p.Through)
	}
	p.judge, p.archived = judge, sum.Checkpoint(p.LogID).Root
	return nil
}

// compare verifies the archive whole, and holds the log against it.
func (p *Plan) compare(ctx context.Context, archive string, m backup.Manifest) error {
	verified, err := backup.Verify(ctx, archive, func(seq, last uint64) { p.tell.say("verifying the archive", seq, last) })
	if err != nil {
		return fmt.Errorf("%w Name that one. Nothing was changed", err)
	}
	if verified.Last != m.Last || verified.Root != m.Root {
		return fmt.Errorf("the archive in %s was changed meanwhile: wait until the backup has ended, and run this again; nothing was changed", archive)
	}
	tree, err := seal.ReadTree(filepath.Join(archive, seal.HashesFile))
	if err != nil {
		return err
	}
	defer tree.Close()
	root, err := tree.Root(p.Floor - 1)
	if err != nil {
		return err
	}
	if root != p.root {
		return fmt.Errorf("the commits 1 to %d of the log are not those of the archive in %s: the root of their tree is %s in the log, and %s in the archive; find out what differs with audit verify before anything is dropped; nothing was changed",
			p.Floor-1, archive, p.root, root)
	}
	if m.Root != p.archived {
		return fmt.Errorf("the archive in %s has other commits between %d and %d than the log: %s", archive, p.Floor, m.Last, branched)
	}
	return nil
}
