package eventlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// closingKey is in the metadata of an epoch's stream from the moment that its closing begins. It says who closes it and why, so
// that another process can end what one began.
const closingKey = "scute.dev/closing"

// Closing says who closes an epoch, and why.
type Closing struct {
	Actor  string    `json:"actor"`
	Reason string    `json:"reason,omitempty"`
	Time   time.Time `json:"time"`
	// Epoch is the number of the epoch that is meant, so that one that was closed meanwhile is not followed by the next one; 0 is
	// whichever is open.
	Epoch int `json:"-"`
}

// closing is what the metadata of a stream says of it.
type closing struct {
	Closing
	// ID tells this closing from every other one.
	ID string `json:"id"`
	// MaxBytes is the limit of the stream, which the next one gets.
	MaxBytes int64 `json:"maxBytes"`
}

// closingRoom is what may still be stored in an epoch that is being closed: its last commit, and what was on its way.
const closingRoom = 1 << 20

// CloseEpoch closes the open epoch of the log: it is not appended to any more, and the log continues in another stream. Nothing
// else changes: sequences continue, and both are read as one log. Appends that come meanwhile wait. A process that dies in the
// middle leaves a closing that the next writer ends. It fails with ErrEmptyEpoch if there is nothing to close, and with ErrConfig if
// there is a stream of the next one's name.
func (l *Log) CloseEpoch(ctx context.Context, c Closing) error {
	if err := l.closeEpoch(ctx, c); err != nil {
		return fmt.Errorf("closing epoch %d of the log: %w", l.current().spec.number(), err)
	}
	return nil
}

func (l *Log) closeEpoch(ctx context.Context, c Closing) error {
	state, err := l.state(ctx)
	if err != nil {
		return err
	}
	e := l.current()
	config := e.stream.CachedInfo().Config
	if isClosing(config) || 0 < c.Epoch && c.Epoch < e.spec.number() {
		return l.finish(ctx)
	}
	if c.Epoch > e.spec.number() {
		return fmt.Errorf("%w: epoch %d was to be closed, but it is not begun", ErrConfig, c.Epoch)
	}
	if err := l.closable(ctx, e, state); err != nil {
		if _, unknown := l.state(ctx); unknown == nil && l.current().spec.number() > e.spec.number() {
			return l.finish(ctx) // another process has closed it meanwhile
		}
		return err
	}
	c.Time = c.Time.UTC()
	text, err := json.Marshal(closing{Closing: c, ID: newID(), MaxBytes: config.MaxBytes})
	if err != nil {
		return err
	}
	config.Metadata = maps.Clone(config.Metadata)
	config.Metadata[closingKey] = string(text)
	config.Subjects = e.spec.subjects(true)
	// A full stream takes the last commit, too. And a server that reserves MaxBytes of each stream refuses here, before anything is
	// changed, if it has no room for both epochs.
	limit, used := config.MaxBytes, int64(state.Bytes) //nolint:gosec // the server has it as an int64
	config.MaxBytes += used + closingRoom
	err = l.update(ctx, config)
	if hasCode(err, codeStreamBytes) && used+closingRoom <= limit {
		// The account limits the size of each stream, and this one has the space.
		config.MaxBytes = limit
		err = l.update(ctx, config)
	}
	if err != nil {
		if lacksRoom(err) {
			err = fmt.Errorf("%w: %w: the closed epoch and the limit of the next one take %d bytes: nothing was changed; %s", ErrNoRoom, err, used+limit+closingRoom, makeRoom)
		}
		return err
	}
	l.reached("narrowed")
	if err := l.finish(ctx); err != nil {
		return err
	}
	if l.current().spec.number() == e.spec.number() {
		return fmt.Errorf("%w: another process changed stream %s at the same time, so that nothing was closed", ErrUnavailable, e.spec.stream())
	}
	return nil
}

// lacksRoom says that a server has no room for a stream of such a size; makeRoom is what to do then.
func lacksRoom(err error) bool {
	return hasCode(err, codeStorage, codeAccountLimit, codeStreamBytes)
}

const makeRoom = "raise the storage limit of the NATS account or server (max_file), or lower the limit of the log"

// hasCode says that a server answered with one of some codes.
func hasCode(err error, codes ...jetstream.ErrorCode) bool {
	refused := (*jetstream.APIError)(nil)
	return errors.As(err, &refused) && slices.Contains(codes, refused.ErrorCode)
}

// finish ends a closing that this or another process began. Without one it does nothing. Each step is one change at the server and
// can be repeated, also by several processes at once.
func (l *Log) finish(ctx context.Context) error {
	for {
		e := l.current()
		info := e.stream.CachedInfo()
		if err := led(info); err != nil {
			return err
		}
		switch {
		case !isClosing(info.Config):
			return l.begun(ctx, e)
		case info.Config.Sealed:
			if err := l.create(ctx, e, info); err != nil {
				return err
			}
			l.reached("created")
		default:
			if err := l.end(ctx, e, info.Config); err != nil {
				return err
			}
			l.reached("sealed")
		}
	}
}

// end appends the last commit of an epoch that takes nothing else any more, and seals its stream.
func (l *Log) end(ctx context.Context, e epoch, config jetstream.StreamConfig) error {
	c, err := closingOf(config)
	if err != nil {
		return err
	}
	fact := EpochClosed{Epoch: e.spec.number(), Stream: e.spec.stream(), Next: e.spec.next(0).stream(), Reason: c.Reason}
	if err := l.say(ctx, c, "close", e, fact); err != nil {
		return err
	}
	l.reached("said")
	// What was on its way when the stream stopped to take it is stored before the commit that says so.
	info, err := e.info(ctx)
	if err != nil {
		return err
	}
	sealed := info.Config
	// A daemon that starts may have written another limit, and with it what it had read of the stream before the closing began.
	sealed.Subjects, sealed.Metadata, sealed.Sealed = config.Subjects, config.Metadata, true
	// A server reserves MaxBytes of each stream: the next one needs the rest.
	sealed.MaxBytes = int64(max(info.State.Bytes, 1)) //nolint:gosec // the server has it as an int64
	return l.update(ctx, sealed)
}

// create makes the stream of the epoch that follows one that was closed.
func (l *Log) create(ctx context.Context, e epoch, closed *jetstream.StreamInfo) error {
	next := e.spec.next(closed.State.LastSeq + 1)
	if next.acknowledged > closed.State.LastSeq {
		return fmt.Errorf("%w: stream %s, though commits up to %d were acknowledged: it was deleted or damaged; restore the log from a backup or a mirror",
			ErrMissing, next.stream(), next.acknowledged)
	}
	c, err := closingOf(closed.Config)
	if err != nil {
		return err
	}
	config := next.config()
	config.Metadata[identityKey] = l.id
	config.Replicas, config.MaxBytes = closed.Config.Replicas, c.MaxBytes
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	if _, err := l.js.CreateStream(ctx, config); err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		return fmt.Errorf("%w: creating stream %s, in which the log continues: %w", ErrUnavailable, next.stream(), err)
	}
	_, err = l.state(ctx)
	return err
}

// begun appends the first commit of an epoch, if it has none.
func (l *Log) begun(ctx context.Context, e epoch) error {
	if e.opened {
		return nil
	}
	list := l.all()
	at := slices.IndexFunc(list, func(o epoch) bool { return o.spec.number() == e.spec.number()-1 })
	if at < 0 {
		return fmt.Errorf("%w: the epoch before %d is not known", ErrUnavailable, e.spec.number())
	}
	before := list[at]
	c, err := closingOf(before.stream.CachedInfo().Config)
	if err != nil {
		return err
	}
	last, err := l.At(ctx, before.last)
	if err != nil {
		return err
	}
	err = l.say(ctx, c, "open", e, EpochOpened{
		Epoch: e.spec.number(), Stream: e.spec.stream(), Previous: before.spec.stream(), Last: before.last, Commit: last.Fingerprint(),
	})
	if err != nil {
		return err
	}
	l.reached("opened")
	l.opened(e.spec.number())
	return nil
}

// say appends a fact about an epoch to it.
func (l *Log) say(ctx context.Context, c closing, step string, e epoch, fact EpochEvent) error {
	ev, err := NewEpochCatalog().Encode(fact)
	if err != nil {
		return err
	}
	ev.Time, ev.Actor = c.Time, c.Actor
	last, ok, err := l.last(ctx, epochs().Subject())
	if err != nil {
		return err
	}
	commit := Commit{Aggregate: epochs(), ID: step + "/" + c.ID, Expected: last.Seq, Events: []Event{ev}, epoch: e.spec.number()}
	// Two processes may have begun to close the epoch before, or this one, each with its own ID: one of them says so.
	if ok && (last.CommitID == commit.ID || last.Seq >= e.spec.start() && (step == "open" || last.closes())) {
		return nil
	}
	_, err = l.Append(ctx, commit)
	if errors.Is(err, ErrConflict) {
		// Another process ends the same closing, and was first.
		return nil
	}
	return err
}

func (l *Log) update(ctx context.Context, config jetstream.StreamConfig) error {
	ctx, cancel := context.WithTimeout(ctx, 2*requestTimeout)
	defer cancel()
	err := l.denials.during(ctx, "$JS.API.STREAM.UPDATE."+config.Name, func(ctx context.Context) error {
		_, err := l.js.UpdateStream(ctx, config)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: changing stream %s: %w", ErrUnavailable, config.Name, err)
	}
	_, err = l.state(ctx)
	return err
}

// reached tells tests how far a closing is.
func (l *Log) reached(step string) {
	if l.reach != nil {
		l.reach(step)
	}
}

// isClosing says that the closing of a stream has begun; it may have ended.
func isClosing(c jetstream.StreamConfig) bool { return c.Metadata[closingKey] != "" }

func closingOf(config jetstream.StreamConfig) (c closing, err error) {
	if err := json.Unmarshal([]byte(config.Metadata[closingKey]), &c); err != nil {
		return c, fmt.Errorf("%w: Metadata %s of stream %s: %w", ErrConfig, closingKey, config.Name, err)
	}
	return c, nil
}
