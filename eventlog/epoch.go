package eventlog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// epoch is one of the streams that the log is a sequence of. All but the last one are closed: nothing is stored in them any more.
// Sequences continue from one to the next, so that they name a commit of the log and not of a stream.
type epoch struct {
	spec    streamSpec
	stream  jetstream.Stream
	created time.Time
	// last is the sequence of its last commit if another epoch follows it, 0 otherwise.
	last uint64
	// opened says that it has its first commit, which names the epoch before.
	opened bool
}

func newEpoch(spec streamSpec, stream jetstream.Stream) epoch {
	info := stream.CachedInfo()
	return epoch{spec: spec, stream: stream, created: info.Created, opened: spec.epoch < 2 || info.State.Msgs > 0}
}

// differences names every field of the stream's configuration that is not as it must be.
func (e epoch) differences() []string { return e.spec.differences(e.stream.CachedInfo().Config) }

// Epoch is a part of the log that is stored in one stream.
type Epoch struct {
	// Number is 1 for the first epoch.
	Number int    `json:"number"`
	Stream string `json:"stream"`
	Closed bool   `json:"closed"`
	// Dropped says that the epochs up to Number were dropped, and the stream has what is kept of them.
	Dropped bool `json:"dropped,omitempty"`
	// First and Last are the sequences of its commits. Last is below First while it has none.
	First uint64 `json:"first"`
	Last  uint64 `json:"last"`
	// Since and Until are when the server stored them; zero while it has none.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	Bytes uint64    `json:"bytes"`
}

// Epochs lists the epochs of the log, the first one first.
func (l *Log) Epochs(ctx context.Context) ([]Epoch, error) {
	if _, err := l.state(ctx); err != nil {
		return nil, fmt.Errorf("reading the epochs of the log: %w", err)
	}
	var out []Epoch
	err := l.again(ctx, func() (err error) {
		out, err = l.describe(ctx)
		return err
	})
	return out, err
}

func (l *Log) describe(ctx context.Context) (out []Epoch, err error) {
	for _, e := range l.all() {
		info, err := e.info(ctx)
		if err != nil {
			return nil, fmt.Errorf("reading epoch %d of the log: %w", e.spec.number(), err)
		}
		s := info.State
		d := Epoch{
			Number: e.spec.number(), Stream: e.spec.stream(), Closed: info.Config.Sealed, Dropped: e.spec.kept != nil,
			First: e.spec.start(), Last: s.LastSeq, Bytes: s.Bytes,
		}
		if s.Msgs > 0 {
			d.Since, d.Until = s.FirstTime, s.LastTime
		}
		out = append(out, d)
	}
	return out, nil
}

// OpenStream is the stream that commits are appended to.
func (l *Log) OpenStream() string { return l.current().spec.stream() }

// all are the epochs that are known, the first one first. Nobody alters the slice.
func (l *Log) all() []epoch { return *l.epochs.Load() }

// current is the newest epoch that is known.
func (l *Log) current() epoch {
	list := l.all()
	return list[len(list)-1]
}

// epochOf is the place of the epoch that has a sequence, or will have it.
func epochOf(list []epoch, seq uint64) int {
	for i := len(list) - 1; i > 0; i-- {
		if list[i].spec.start() <= seq {
			return i
		}
	}
	return 0
}

// catchUp looks for the epochs that follow the newest one that is known. It costs nothing while that one is open, as far as its
// stream said when it was asked last. One that must be there and is not may have been dropped since, with those that are known.
func (l *Log) catchUp(ctx context.Context) error {
	return l.again(ctx, func() error { return l.lookForNext(ctx) })
}

func (l *Log) lookForNext(ctx context.Context) error {
	l.moving.Lock()
	defer l.moving.Unlock()
	list := slices.Clone(l.all())
	for {
		e := &list[len(list)-1]
		info := e.stream.CachedInfo()
		if !info.Config.Sealed {
			break
		}
		if err := led(info); err != nil {
			return err // another one asks, too, and what it was told is not what this one was
		}
		next := e.spec.next(info.State.LastSeq + 1)
		var stream jetstream.Stream
		err := l.denials.during(ctx, "$JS.API.STREAM.INFO."+next.stream(), func(ctx context.Context) (err error) {
			stream, err = next.find(ctx, l.js, l.id)
			return err
		})
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			there, err := l.comesNext(ctx, next)
			if err != nil {
				return err
			}
			if !there {
				break
			}
			continue
		}
		if err != nil {
			return err
		}
		next.first = stream.CachedInfo().Config.FirstSeq // the same, unless remains are examined
		e.last = next.first - 1
		list = append(list, newEpoch(next, stream))
	}
	if len(list) == len(l.all()) {
		return nil
	}
	if l.host != nil {
		if err := l.host.Continues(list[len(list)-1].spec.stream()); err != nil {
			return err
		}
	}
	l.epochs.Store(&list)
	return nil
}

// comesNext looks again for an epoch that was not there, among all streams: who closes the one before may just have made it. It fails with ErrMissing
// if those that follow it are there.
func (l *Log) comesNext(ctx context.Context, next streamSpec) (there bool, err error) {
	if next.examine {
		return false, nil
	}
	later, err := l.epochsAfter(ctx, next.number()-1)
	if _, there := later[next.number()]; there || err != nil {
		return there, err
	}
	for _, name := range later {
		return false, fmt.Errorf("%w: stream %s, though stream %s follows it; restore the log from a backup or a mirror", ErrMissing, next.stream(), name)
	}
	return false, nil
}

// epochsAfter are the streams with the names of later epochs, by their numbers.
func (l *Log) epochsAfter(ctx context.Context, number int) (map[int]string, error) {
	listed, err := l.list(ctx)
	if err != nil {
		return nil, fmt.Errorf("looking for the epochs after %d: %w", number, err)
	}
	_, epochs := l.spec.parts(listed)
	maps.DeleteFunc(epochs, func(n int, _ string) bool { return n <= number })
	return epochs, nil
}

// opened notes that an epoch has its first commit.
func (l *Log) opened(number int) {
	l.moving.Lock()
	defer l.moving.Unlock()
	list := slices.Clone(l.all())
	for i := range list {
		list[i].opened = list[i].opened || list[i].spec.number() == number
	}
	l.epochs.Store(&list)
}

// resize gives the open epoch the limit that the log was opened with. The first one has it already.
func (l *Log) resize(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	l.moving.Lock()
	defer l.moving.Unlock()
	list := slices.Clone(l.all())
	e := &list[len(list)-1]
	if e.spec.epoch < 2 {
		return nil
	}
	stream, err := e.spec.update(ctx, l.js, e.stream)
	if err != nil {
		return err
	}
	e.stream = stream
	l.epochs.Store(&list)
	return nil
}

// find opens the stream of an epoch that follows another one, and checks that it does.
func (s streamSpec) find(ctx context.Context, js jetstream.JetStream, id string) (jetstream.Stream, error) {
	stream, err := getStream(ctx, js, s.stream())
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("%w: stream %s: %w", ErrUnavailable, s.stream(), err)
	}
	info := stream.CachedInfo()
	if have := identity(info); have != id {
		return nil, fmt.Errorf("%w: stream %s is of log %s, the log that it follows is %s; remove what is not of this log", ErrConfig, s.stream(), have, id)
	}
	if s.examine {
		return stream, nil
	}
	if info.Config.FirstSeq != s.first {
		return nil, fmt.Errorf("%w: stream %s begins with %d, but the one before it ends with %d; restore the log from a backup or a mirror",
			ErrGap, s.stream(), info.Config.FirstSeq, s.first-1)
	}
	if diff := s.differences(info.Config); len(diff) > 0 {
		return nil, fmt.Errorf("%w: stream %s: %s; correct the stream", ErrConfig, s.stream(), strings.Join(diff, "; "))
	}
	return stream, whole(s, info.State)
}

// number is 1 for the first epoch.
func (s streamSpec) number() int { return max(s.epoch, 1) }

// start is the sequence of the first commit of the epoch.
func (s streamSpec) start() uint64 { return max(s.first, 1) }

// stream is the name of the epoch's stream.
func (s streamSpec) stream() string {
	if s.kept != nil {
		return s.kept.Stream
	}
	if s.epoch < 2 {
		return s.name
	}
	return s.name + "_" + strconv.Itoa(s.epoch)
}

// next is the epoch after this one.
func (s streamSpec) next(first uint64) streamSpec {
	s.epoch, s.first, s.kept = s.number()+1, first, nil
	return s
}

// subject is where a commit is sent to the epoch. It is another one in each epoch, so that a process that does not know that an
// epoch was closed stores nothing in the next one without a look at what it follows. The stream stores the commit on the subject
// of its aggregate.
func (s streamSpec) subject(stored string) string {
	if s.epoch < 2 {
		return stored
	}
	return subjectPrefix + strconv.Itoa(s.epoch) + "." + strings.TrimPrefix(stored, subjectPrefix)
}

// subjects are what the stream of the epoch takes. While it is being closed, and from then on, it takes only what says so.
func (s streamSpec) subjects(closing bool) []string {
	if closing {
		return []string{s.subject(epochs().Subject())}
	}
	return []string{s.subject(subjectPrefix + "*.*")}
}

// transform turns the subjects that the epoch takes into those of the aggregates.
func (s streamSpec) transform() *jetstream.SubjectTransformConfig {
	if s.epoch < 2 {
		return nil
	}
	return &jetstream.SubjectTransformConfig{Source: s.subject(subjectPrefix + "*.*"), Destination: subjectPrefix + "{{wildcard(1)}}.{{wildcard(2)}}"}
}
