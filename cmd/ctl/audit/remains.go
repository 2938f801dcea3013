package audit

import (
	"cmp"
	"slices"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog/seal"
)

// remains are what a log has kept of dropped epochs. Of each aggregate these are its last commits, from one on, after a tombstone in the
// place of the one before if there was one. So a commit that was removed shows, as does a tombstone, without which the aggregate could begin a second time.
type remains struct {
	hasher seal.Hasher
	kept   map[uint64]remain
	of     map[string]ofSubject
	found  []seal.Finding
}

type remain struct {
	hash    tlog.Hash
	dropped bool
}

// ofSubject is how far the commits of an aggregate were compared.
type ofSubject struct {
	// absent is the last commit that the log does not have, and for which no tombstone came yet; 0 is none.
	absent uint64
	// began says that a tombstone or a commit that is kept came: everything after it must be kept.
	began bool
}

func newRemains() *remains {
	return &remains{kept: make(map[uint64]remain), of: make(map[string]ofSubject)}
}

// add takes what the log has kept.
func (k *remains) add(m seal.Message) {
	k.kept[m.Seq] = remain{k.hasher.Hash(m), m.Record().Dropped()}
}

// compare takes the next commit of the archive.
func (k *remains) compare(m seal.Message) {
	has, ok := k.kept[m.Seq]
	delete(k.kept, m.Seq)
	o := k.of[m.Subject]
	switch {
	case !ok && o.began:
		k.find(seal.Missing, m.Seq, "the log has kept the commits of this object before it, and not this one")
	case !ok:
		o.absent = m.Seq
	default: // what is absent before a commit without a tombstone stays to be found
		want := m
		if has.dropped {
			want = seal.MessageOf(m.Record().Tombstone())
			o.absent = 0
		}
		if has.dropped && o.began {
			k.find(seal.Changed, m.Seq, "the log has a tombstone in the place of a commit whose predecessors it has kept")
		} else if has.hash != k.hasher.Hash(want) {
			k.find(seal.Changed, m.Seq, "what the log has kept is not what the archive has")
		}
		o.began = true
	}
	k.of[m.Subject] = o
}

func (k *remains) find(kind seal.Kind, seq uint64, detail string) {
	k.found = append(k.found, seal.Finding{Kind: kind, Run: seal.Run{First: seq, Last: seq}, Detail: detail})
}

// findings are what differs, when the archive was read.
func (k *remains) findings() []seal.Finding {
	for _, o := range k.of {
		if o.absent > 0 {
			k.find(seal.Missing, o.absent, "the log has neither this commit, the last one of its object that was dropped, nor a tombstone in its place")
		}
	}
	for seq := range k.kept {
		k.find(seal.Added, seq, "the log has kept a commit that the archive does not have")
	}
	slices.SortFunc(k.found, func(a, b seal.Finding) int { return cmp.Compare(a.First, b.First) })
	return k.found
}
