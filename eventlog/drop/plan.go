package drop

import (
	"context"
	"errors"
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
	tell   Progress
}

// Progress is told how far something is; nil tells nobody.
type Progress func(doing string, seq, last uint64)

func (p Progress) say(doing string, seq, last uint64) {
	if p != nil {
		p(doing, seq, last)
	}
}

const remedy = "back the log up into it now (backup log), and run this again; nothing was changed"

// Prepare decides what a drop of the first epochs of a log does, and refuses one of epochs that are not in the archive in a folder as they are in
// the log. It changes nothing, but ends a closing or a drop that began before. It reads the archive once and the epochs twice, and keeps about 100 bytes for each aggregate that they have.
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
	m, err := p.manifest(archive)
	if err != nil {
		return nil, err
	}
	if err := p.read(ctx, judge()); err != nil {
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
func (p *Plan) manifest(archive string) (backup.Manifest, error) {
	m, err := backup.Read(archive)
	switch {
	case err != nil:
		return m, fmt.Errorf("%w: %s", err, remedy)
	case m.LogID != p.LogID:
		return m, fmt.Errorf("%s is an archive of log %s, this is log %s: name the archive of this log, or an empty folder and %s", archive, m.LogID, p.LogID, remedy)
	case m.Last < p.Floor-1:
		return m, fmt.Errorf("the archive in %s ends with commit %d, epoch %d with %d: %s", archive, m.Last, p.Through, p.Floor-1, remedy)
	}
	p.Archive = eventlog.Archived{Last: m.Last, Root: m.Root.String(), Taken: m.Taken}
	return m, nil
}

// read reads the epochs as the log has them: what has not ended by their end, the last commit of everything, and the tree.
func (p *Plan) read(ctx context.Context, judge Judge) error {
	before := p.log.Floor()
	sum, err := seal.SumFrom(before)
	if err != nil {
		return err
	}
	below := p.log.Below()
	var opened eventlog.Record
	err = p.log.Remains(ctx, p.Floor, func(r eventlog.Record) error {
		p.tell.say("reading", r.Seq, p.Floor)
		if !r.Dropped() {
			_ = judge.Apply(r) // what it cannot follow stays
		}
		if r.Seq == p.Floor {
			opened = r
			return nil
		}
		p.last[r.Aggregate] = r.Seq
		if r.Seq > below {
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
	p.judge = judge
	p.root = sum.Checkpoint(p.LogID).Root
	p.floor = eventlog.Floor{Through: p.Through, Seq: p.Floor, Edge: sum.Edge()}
	return nil
}

// compare verifies the archive whole, and holds the log against it.
func (p *Plan) compare(ctx context.Context, archive string, m backup.Manifest) error {
	verified, err := backup.Verify(ctx, archive, func(seq, last uint64) { p.tell.say("verifying the archive", seq, last) })
	if err != nil {
		return fmt.Errorf("%w; keep it, %s", err, "back the log up into another folder, and name that; nothing was changed")
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
	return p.continues(ctx, archive, m, tree)
}

// continues checks that the log has the last commit of the archive: after the drop no other backup than one into the archive is possible, and that
// would refuse a log which went back and continued in another way.
func (p *Plan) continues(ctx context.Context, archive string, m backup.Manifest, tree *seal.Tree) error {
	const other = "the log went back and continued in another way; keep this archive, it has what was lost, back the log up into another folder, and name that; nothing was changed"
	head, err := p.log.Head(ctx)
	if err != nil {
		return err
	}
	if head < m.Last {
		return fmt.Errorf("the log ends at %d, the archive in %s at %d: %s", head, archive, m.Last, other)
	}
	last, err := p.log.At(ctx, m.Last)
	if err != nil {
		return err
	}
	leaf, err := tree.Leaf(m.Last)
	if err != nil {
		return err
	}
	if new(seal.Hasher).Hash(seal.MessageOf(last)) != leaf {
		return fmt.Errorf("commit %d of the log is not the one of the archive in %s: %s", m.Last, archive, other)
	}
	return nil
}

// choose counts what is kept, and checks that a view of it is the one that has followed all along.
func (p *Plan) choose(ctx context.Context, again Judge) error {
	digest, objects := new(seal.Sum), make(map[eventlog.Aggregate]bool)
	var had uint64
	err := p.each(ctx, p.Floor, func(r eventlog.Record) error {
		p.tell.say("choosing", r.Seq, p.Floor)
		if r.Dropped() {
			p.Tombstones++
		} else {
			_ = again.Apply(r)
			if r.Seq < p.Floor {
				p.Kept++
				objects[r.Aggregate] = true
			}
		}
		if r.Seq == p.Floor {
			return nil
		}
		digest.Add(seal.MessageOf(r))
		if p.floor.First == 0 {
			p.floor.First = r.Seq
		}
		p.KeptBytes += stored(r)
		return nil
	}, func() { had++ })
	if err != nil {
		return err
	}
	for a := range objects {
		p.Objects[a.Kind]++
	}
	p.Dropped = had - p.Kept
	p.floor.Commits, p.floor.Tombstones = p.Kept, p.Tombstones
	p.digest = digest.Checkpoint(p.LogID).Root
	followed, err := p.judge.Hash()
	kept, err2 := again.Hash()
	if err := errors.Join(err, err2); err != nil {
		return err
	}
	if followed != kept {
		return errors.New("a view of what would be kept is not the one that has followed the log all along: nothing was changed; this is a defect of scute, report it")
	}
	return nil
}

// each hands over what is kept, up to a sequence. had is called for each commit that the epochs have; it may be nil.
func (p *Plan) each(ctx context.Context, until uint64, fn func(eventlog.Record) error, had func()) error {
	return p.log.Remains(ctx, until, func(r eventlog.Record) error {
		if had != nil && !r.Dropped() && r.Seq < p.Floor {
			had()
		}
		switch {
		case r.Seq >= p.Floor, p.judge.Stays(r.Aggregate):
			return fn(r)
		case p.last[r.Aggregate] == r.Seq:
			return fn(r.Tombstone())
		}
		return nil
	})
}

// stored is about what a commit takes in a stream: its parts, a record's header and checksum, and what the header has beside its values.
func stored(r eventlog.Record) uint64 {
	n := len(r.Subject()) + len(r.Data()) + 64
	for name, values := range r.Header() {
		for _, v := range values {
			n += len(name) + len(v) + 4
		}
	}
	return uint64(n) //nolint:gosec // not negative
}
