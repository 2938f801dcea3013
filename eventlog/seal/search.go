package seal

import (
	"crypto/sha256"
	"encoding/binary"
	"hash"

	"golang.org/x/mod/sumdb/tlog"

	"scute.dev/eventlog"
)

const (
	// searchDistance is the distance from its sequence within which Add searches for a commit that differs from the sealed one.
	searchDistance = 8
	// maxCandidates bounds the commits, and the sequences, that Report compares with each other.
	maxCandidates = 512
)

// search identifies commits that differ from the commits that were sealed with their sequences.
type search struct {
	leaves *leafReader
	// unknown are the sequences of commits that were not found elsewhere, and suspects are the first of these commits.
	unknown  runs
	suspects []suspect
	// moved are commits that were sealed with other sequences.
	moved   []move
	encoder encoder
	buf     []byte
}

// suspect is a commit without its sequence.
type suspect struct {
	at      uint64
	content hash.Cloner
}

// move is a run of commits that were sealed with another run of the same length, which begins with sealed.
type move struct {
	Run
	sealed uint64
}

// add adds a commit that differs from the commit that was sealed with the same sequence.
func (s *search) add(r eventlog.Record, size uint64) error {
	found, content, err := s.searchNearby(r, size)
	if err != nil || found {
		return err
	}
	s.unknown.extend(r.Seq, r.Seq)
	if len(s.suspects) < maxCandidates {
		s.suspects = append(s.suspects, suspect{r.Seq, content})
	}
	return nil
}

// checkTrailing checks a commit after the checkpoint, because it may have been moved there.
func (s *search) checkTrailing(r eventlog.Record, size uint64) error {
	if s.leaves == nil || r.Seq > size+searchDistance && len(s.moved) == 0 {
		return nil
	}
	_, _, err := s.searchNearby(r, size)
	return err
}

// searchNearby searches for the sequence with which a commit was sealed: first where the last move predicts it, then around its sequence.
func (s *search) searchNearby(r eventlog.Record, size uint64) (bool, hash.Cloner, error) {
	content := s.content(r)
	var tries []uint64
	if n := len(s.moved); n > 0 {
		tries = append(tries, r.Seq+s.moved[n-1].sealed-s.moved[n-1].First)
	}
	if len(s.suspects) < maxCandidates {
		for d := uint64(1); d <= searchDistance; d++ {
			tries = append(tries, r.Seq+d, r.Seq-d)
		}
	}
	for _, sealed := range tries {
		if sealed == r.Seq || sealed == 0 || sealed > min(size, s.leaves.tree.Size()) {
			continue
		}
		ok, err := s.wasSealedAt(content, sealed)
		if err != nil {
			return false, nil, err
		}
		if ok {
			s.recordMove(r.Seq, sealed)
			return true, nil, nil
		}
	}
	return false, content, nil
}

// content returns the state of the hash of a leaf before its sequence.
func (s *search) content(r eventlog.Record) hash.Cloner {
	s.buf = s.encoder.content(append(s.buf[:0], leafPrefix), r)
	h, _ := sha256.New().(hash.Cloner)
	_, _ = h.Write(s.buf)
	return h
}

// wasSealedAt reports whether a content was sealed with a sequence.
func (s *search) wasSealedAt(content hash.Cloner, sealed uint64) (bool, error) {
	want, err := s.leaves.leaf(sealed)
	if err != nil {
		return false, err
	}
	h, err := content.Clone()
	if err != nil {
		return false, err
	}
	var seq [8]byte
	binary.BigEndian.PutUint64(seq[:], sealed)
	_, _ = h.Write(seq[:])
	return tlog.Hash(h.Sum(nil)) == want, nil
}

func (s *search) recordMove(at, sealed uint64) {
	if n := len(s.moved); n > 0 {
		if last := &s.moved[n-1]; last.Last+1 == at && last.sealed+at-last.First == sealed {
			last.Last = at
			return
		}
	}
	s.moved = append(s.moved, move{Run{at, at}, sealed})
}

// classify adds the findings up to the sequence known to the report. holes are the sequences without a commit.
func (s *search) classify(r *Report, known uint64, holes runs) error {
	_, holes = split(holes, runs{{1, known}})
	_, unknown := split(s.unknown, runs{{1, known}})
	at, sealed := s.positions()
	candidates, _ := split(union(union(unknown, holes), at), sealed)
	_, candidates = split(candidates, runs{{1, known}})
	moved, err := s.searchAll(candidates, known)
	if err != nil {
		return err
	}
	unknown, _ = split(unknown, moved)
	at, sealed = s.positions()
	_, at = split(at, runs{{1, known}})
	changed, added := split(unknown, sealed)
	missing, _ := split(union(holes, at), sealed)
	r.addFindings(Changed, changed)
	r.addFindings(Added, added)
	r.addFindings(Missing, missing)
	for _, m := range s.moved {
		r.Findings = append(r.Findings, Finding{Kind: Reordered, Run: m.Run, Sealed: m.sealed})
	}
	if n := unknown.count(); n > maxCandidates {
		r.Notes = append(r.Notes, "too many commits differ to search for each of them at every sequence: some that are reported as changed may have been moved")
	}
	return nil
}

// positions returns where moved commits are, and where they were sealed.
func (s *search) positions() (at, sealed runs) {
	for _, m := range s.moved {
		at = union(at, runs{m.Run})
		sealed = union(sealed, runs{{m.sealed, m.sealed + m.Last - m.First}})
	}
	return at, sealed
}

// searchAll searches for the suspects at all candidate sequences, and returns the sequences of the suspects that it found there.
func (s *search) searchAll(candidates runs, known uint64) (moved runs, err error) {
	var places []uint64
	for _, c := range candidates {
		for seq := c.First; seq <= c.Last && len(places) < maxCandidates; seq++ {
			places = append(places, seq)
		}
	}
	for _, x := range s.suspects {
		if x.at > known {
			break
		}
		for _, sealed := range places {
			ok, err := s.wasSealedAt(x.content, sealed)
			if err != nil {
				return nil, err
			}
			if ok {
				s.recordMove(x.at, sealed)
				moved.extend(x.at, x.at)
				break
			}
		}
	}
	return moved, nil
}
