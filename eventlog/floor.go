package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// keptKey is in the metadata of the stream with what is kept of dropped epochs: a Floor.
	keptKey = "scute.dev/kept"
	// makingKey is there as well until the drop is decided and the stream is whole. A stream that has it is not of the log.
	makingKey = "scute.dev/making"
	// KeptInfix is in the name of such a stream, between the name of the log's first stream and the number of the last dropped epoch.
	// No epoch has such a name: theirs are a name, an underscore and a number.
	KeptInfix = "_KEPT_"
	// keptSubjects begins the only subject of such a stream, of which no other one has it. Nothing is ever appended there. It overlaps with the subjects of a first
	// epoch, so that a program that does not know of floors cannot begin a new log beside one that has a floor.
	keptSubjects = subjectPrefix + "kept."
)

// Floor says what was dropped of a log, and what is kept of it.
type Floor struct {
	// Through is the number of the last epoch that was dropped.
	Through int `json:"through"`
	// Seq is the floor: the first sequence from which on the log is whole.
	Seq uint64 `json:"floor"`
	// First is the sequence of the first commit that is kept, or tombstone. Commits and Tombstones are how many there are.
	First      uint64 `json:"first"`
	Commits    uint64 `json:"commits"`
	Tombstones uint64 `json:"tombstones"`
	// Edge is the right edge of the log's tree (RFC 6962) of the commits below the floor: the roots of its complete subtrees, the largest
	// first. Package seal continues the tree with it.
	Edge [][]byte `json:"edge"`
	// Since is when the log began to begin with it.
	Since time.Time `json:"since,omitzero"`
	// Stream has what is kept.
	Stream string `json:"-"`
}

// Floor is what was dropped of the log; nil if nothing was. It is as it was when the log was asked last.
func (l *Log) Floor() *Floor { return l.all()[0].spec.kept }

// Below is the number of commits that the log was longer before epochs were dropped: those before its floor, of which it has some.
func (l *Log) Below() uint64 {
	if f := l.Floor(); f != nil {
		return f.Seq - 1
	}
	return 0
}

// below says that a sequence is one of those of which the log has not all.
func (f *Floor) below(seq uint64) bool { return f != nil && seq < f.Seq }

// lacks says that not every commit after a sequence is there. The last one below the floor always is: it closes an epoch.
func (f *Floor) lacks(after uint64) bool { return f != nil && after+2 < f.Seq }

// messages are how many the stream has.
func (f *Floor) messages() uint64 { return f.Commits + f.Tombstones }

// keptName is the name of a stream with what is kept. It has the number of the last dropped epoch and an ID of its attempt, so it is never used
// again, and who removes a stream by its name never removes one that took its place.
func (s streamSpec) keptName(through int, id string) string {
	return s.name + KeptInfix + strconv.Itoa(through) + "_" + id
}

// parseKept is the inverse of keptName.
func (s streamSpec) parseKept(name string) (through int, ok bool) {
	rest, ok := strings.CutPrefix(name, s.name+KeptInfix)
	number, id, two := strings.Cut(rest, "_")
	through, err := strconv.Atoi(number)
	return through, ok && two && err == nil && through > 0 && len(id) == 2*identityBytes
}

// parseEpoch is the inverse of stream.
func (s streamSpec) parseEpoch(name string) (number int, ok bool) {
	if name == s.name {
		return 1, true
	}
	text, ok := strings.CutPrefix(name, s.name+"_")
	number, err := strconv.Atoi(text)
	return number, ok && err == nil && number > 1 && strconv.Itoa(number) == text
}

// names are the streams of the account that have subjects of an event log.
func names(ctx context.Context, js jetstream.JetStream) (out []string, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	list := js.StreamNames(ctx, jetstream.WithStreamListSubject(subjectPrefix+">"))
	for name := range list.Name() {
		out = append(out, name)
	}
	if err := list.Err(); err != nil {
		return nil, fmt.Errorf("%w: listing the streams: %w", ErrUnavailable, err)
	}
	return out, nil
}

// parts are the streams of the log that a listing has: those with what is kept, and those of epochs by their numbers.
func (s streamSpec) parts(listed []string) (kept []string, epochs map[int]string) {
	epochs = make(map[int]string)
	for _, name := range listed {
		if _, ok := s.parseKept(name); ok {
			kept = append(kept, name)
		} else if number, ok := s.parseEpoch(name); ok {
			epochs[number] = name
		}
	}
	return kept, epochs
}

// beginning opens the first part of the log: the first epoch, or what is kept of those that were dropped. A first epoch that was there and
// is not any more may have been dropped meanwhile: then it looks again.
func (l *Log) beginning(ctx context.Context) (e epoch, err error) {
	for range listings {
		var there bool
		if e, there, err = l.lookForBeginning(ctx); !there || !errors.Is(err, ErrMissing) {
			break
		}
	}
	return e, err
}

// lookForBeginning looks once. there says that the first epoch was there when it began to.
func (l *Log) lookForBeginning(ctx context.Context) (e epoch, there bool, err error) {
	var first jetstream.Stream
	err = l.denials.during(ctx, "$JS.API.STREAM", func(ctx context.Context) (err error) {
		first, err = getStream(ctx, l.js, l.spec.name)
		return err
	})
	there = err == nil
	var rest []string
	if there { // one that is not there any more was dropped or lost
		rest = []string{l.spec.name}
	}
	if there && !isClosing(first.CachedInfo().Config) {
		e, err = l.beginWith(ctx, rest)
		return e, there, err
	}
	if err != nil && !errors.Is(err, jetstream.ErrStreamNotFound) {
		return e, there, l.spec.unplaced(fmt.Errorf("%w: %w", ErrUnavailable, err))
	}
	listed, err := l.list(ctx)
	if there && errors.Is(err, ErrPermission) { // the first epoch has what is kept of it
		e, err = l.beginWith(ctx, rest)
		return e, there, err
	}
	if err != nil {
		return e, there, fmt.Errorf("looking for what is kept of dropped epochs: %w", err)
	}
	kept, ok, err := l.findKept(ctx, &listed)
	if err != nil || ok {
		return kept, there, err
	}
	if streams, epochs := l.spec.parts(listed); !there {
		// Parts of a log without its beginning are no reason to begin another one.
		rest = slices.Concat(streams, slices.Collect(maps.Values(epochs)))
	}
	e, err = l.beginWith(ctx, rest)
	return e, there, err
}

// beginWith opens the first epoch, or makes it. rest are streams of a log that must begin with it.
func (l *Log) beginWith(ctx context.Context, rest []string) (e epoch, err error) {
	err = l.denials.during(ctx, "$JS.API.STREAM", func(ctx context.Context) error {
		stream, err := l.spec.ensure(ctx, l.js, rest)
		if err == nil {
			e = newEpoch(l.spec, stream)
		}
		return err
	})
	return e, err
}

// listings bounds how often the streams are listed again because of what was dropped meanwhile: each time takes another drop.
const listings = 10

// findKept is that of the specification, with a listing that is made again if what it has was dropped since.
func (l *Log) findKept(ctx context.Context, listed *[]string) (e epoch, ok bool, err error) {
	for range listings {
		err = l.denials.during(ctx, "$JS.API.STREAM.INFO", func(ctx context.Context) (err error) {
			e, ok, err = l.spec.findKept(ctx, l.js, *listed)
			return err
		})
		if !errors.Is(err, errPassed) {
			return e, ok, err
		}
		if *listed, err = l.list(ctx); err != nil {
			return e, false, err
		}
	}
	return epoch{}, false, nil
}

// errPassed says that streams of a listing are not there any more, and that it has nothing in their place.
var errPassed = errors.New("streams were deleted since they were listed")

// findKept opens the stream with what is kept of the epochs that were dropped last, of those in a listing. ok is false if there is none that is whole.
// One that lost something is an error, unless the epochs that were dropped are still there: the log begins with these then.
func (s streamSpec) findKept(ctx context.Context, js jetstream.JetStream, listed []string) (e epoch, ok bool, err error) {
	var damaged error
	var stood int
	var passed bool
	streams, epochs := s.parts(listed)
	for _, name := range streams {
		stream, err := getStream(ctx, js, name)
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			passed = true
			continue
		}
		if err != nil {
			return e, false, fmt.Errorf("%w: stream %s: %w", ErrUnavailable, name, err)
		}
		config := stream.CachedInfo().Config
		if config.Metadata[makingKey] != "" {
			continue
		}
		if through, _ := s.parseKept(name); ok && through <= e.spec.epoch {
			continue
		}
		found, err := s.keptEpoch(stream)
		if through, _ := s.parseKept(name); errors.Is(err, ErrGap) {
			damaged, stood = err, max(stood, through)
			continue
		}
		if err != nil {
			return e, false, err
		}
		e, ok = found, true
	}
	if !ok && passed {
		return e, false, errPassed
	}
	for number := e.spec.epoch + 1; number <= stood; number++ {
		if _, there := epochs[number]; !there {
			return e, false, damaged
		}
	}
	return e, ok, nil
}

// keptEpoch is the stream as the first part of the log.
func (s streamSpec) keptEpoch(stream jetstream.Stream) (epoch, error) {
	info := stream.CachedInfo()
	f, err := floorOf(info.Config)
	if err != nil {
		return epoch{}, err
	}
	s.epoch, s.first, s.kept = f.Through, 0, f
	e := newEpoch(s, stream)
	e.last, e.opened = f.Seq-1, true
	if s.examine {
		return e, nil
	}
	if info.Config.Metadata[makingKey] == "" && (!info.Config.Sealed || !info.Config.DenyDelete || !info.Config.DenyPurge) {
		return e, fmt.Errorf("%w: stream %s must be sealed; make the log again from its archive: docs/operators.md", ErrConfig, info.Config.Name)
	}
	return e, whole(s, info.State)
}

func floorOf(config jetstream.StreamConfig) (*Floor, error) {
	f := &Floor{Stream: config.Name}
	if err := json.Unmarshal([]byte(config.Metadata[keptKey]), f); err != nil {
		return nil, fmt.Errorf("%w: Metadata %s of stream %s: %w; restore the log from its archive", ErrConfig, keptKey, config.Name, err)
	}
	if f.Through < 1 || f.Seq < 2 || f.First < 1 || f.messages() == 0 {
		return nil, fmt.Errorf("%w: Metadata %s of stream %s names no floor; restore the log from its archive", ErrConfig, keptKey, config.Name)
	}
	return f, nil
}

// whole checks that everything is there that is kept of dropped epochs.
func (f *Floor) whole(s jetstream.StreamState) error {
	if s.Lost != nil && len(s.Lost.Msgs) > 0 || s.Msgs != f.messages() || s.FirstSeq != f.First || s.LastSeq != f.Seq-1 {
		return fmt.Errorf("%w: stream %s has what is kept of dropped epochs, and holds %d commits between %d and %d, but should hold %d between %d and %d; restore the log from its archive or a backup",
			ErrGap, f.Stream, s.Msgs, s.FirstSeq, s.LastSeq, f.messages(), f.First, f.Seq-1)
	}
	return nil
}
