package eventlog

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"slices"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// restoringKey is a key in the metadata of a stream, from the start of the stream's restore until
// the restored commits are checked. Its value is the ID of the restore. A stream with this key is
// not a log yet: no process opens it, and the next restore replaces it.
const restoringKey = "scute.dev/restoring"

// RestoreSource is the source of a restore.
type RestoreSource struct {
	LogID string
	// Last is the sequence of the last commit to restore.
	Last uint64
	// Archive writes the commits 1 to Last as a snapshot from which a NATS server restores a stream.
	Archive func(ctx context.Context, w io.Writer) error
	// Check verifies the restored log while no other process can read it. If it fails, the restore
	// fails.
	Check func(ctx context.Context, l *Log) error
	// OnWait is called after the upload with a description of what the restore waits for; may be nil.
	OnWait func(what string)
}

// RestoreExternal creates the log on an external NATS from a backup. It fails with ErrExists if the
// stream exists and ever had a commit. If a restore fails or its process dies, the next call
// replaces the incomplete stream.
func RestoreExternal(ctx context.Context, o ExternalOptions, r RestoreSource) error {
	nc, err := dial(ctx, o)
	if err != nil {
		return err
	}
	defer nc.Close()
	if err := restore(ctx, nc, o.spec(), r); err != nil {
		return fmt.Errorf("restoring the event log at %s: %w", RedactURL(o.URL), err)
	}
	return nil
}

// RestoreHosted creates the log on a server inside this process from a backup. maxBytes is the same
// as HostedOptions.MaxBytes. Programs call embedded.Restore.
func RestoreHosted(ctx context.Context, h nats.InProcessConnProvider, maxBytes int64, r RestoreSource) error {
	nc, err := nats.Connect("", nats.InProcessServer(h), nats.Timeout(HostTimeout))
	if err != nil {
		return err
	}
	defer nc.Close()
	return restore(ctx, nc, streamSpec{name: StreamName, maxBytes: maxBytes}, r)
}

func restore(ctx context.Context, nc *nats.Conn, spec streamSpec, r RestoreSource) error {
	js, err := jetstream.New(nc, jetstream.WithDefaultTimeout(requestTimeout))
	if err != nil {
		return err
	}
	return restoreAt(ctx, nc, js, spec, r)
}

// restoreAt creates the stream, checks it, and then opens it to other processes.
func restoreAt(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, spec streamSpec, r RestoreSource) error {
	if err := checkPayload(nc.MaxPayload()); err != nil {
		return err
	}
	var d denials
	d.listen(nc)
	attempt := newID()
	err := d.run(ctx, "$JS.API.STREAM", func(ctx context.Context) error {
		return d.run(ctx, "$JS.SNAPSHOT.RESTORE", func(ctx context.Context) error { return spec.replace(ctx, nc, js, attempt, r) })
	})
	if err != nil {
		return err
	}
	l, err := open(ctx, nc, streamSpec{name: spec.name, allowDamaged: true}, slog.New(slog.DiscardHandler))
	if err != nil {
		return err
	}
	head, err := l.Head(ctx)
	if err == nil && head != r.Last {
		err = fmt.Errorf("%w: the server has the commits up to %d, must have those up to %d; restore again", ErrGap, head, r.Last)
	}
	if err != nil {
		return err
	}
	stats, err := l.Stats(ctx)
	if err == nil && stats.Bytes > stats.MaxBytes {
		err = fmt.Errorf("%w: the log holds %d bytes, and the limit %d is smaller; choose a larger limit", ErrConfig, stats.Bytes, stats.MaxBytes)
	}
	if err != nil {
		return err
	}
	if err := r.Check(ctx, l); err != nil {
		return err
	}
	stream, err := getStream(ctx, js, spec.name)
	if err != nil {
		return translateError(spec.name, err)
	}
	config := stream.CachedInfo().Config
	if config.Metadata[restoringKey] != attempt {
		return fmt.Errorf("%w: another restore of stream %s started meanwhile, and replaced what this restore had created; let one of them finish", ErrExists, spec.name)
	}
	config.Metadata = maps.Clone(config.Metadata)
	delete(config.Metadata, restoringKey)
	var ended jetstream.Stream
	err = d.run(ctx, "$JS.API.STREAM.UPDATE."+spec.name, func(ctx context.Context) (err error) {
		ended, err = js.UpdateStream(ctx, config)
		return err
	})
	if err != nil {
		return fmt.Errorf("ending the restore of stream %s: %w: %w", spec.name, ErrUnavailable, err)
	}
	if !ended.CachedInfo().Created.Equal(stream.CachedInfo().Created) {
		return fmt.Errorf("%w: another restore, or a daemon, replaced stream %s just when this restore finished, and the stream that exists now, with commits up to %d, is not verified; when neither runs, delete that stream if nobody needs it, and restore again",
			ErrExists, spec.name, ended.CachedInfo().State.LastSeq)
	}
	return nil
}

// attempts limits the attempts to create the stream. Shortly after a server has deleted a stream,
// it removes the empty folders around the stream. Creating a stream during that time fails.
const attempts = 3

// restoreFailed is the server's code (JSStreamRestoreErrF) for an archive that it could not
// restore. A lack of resources has other codes.
const restoreFailed jetstream.ErrorCode = 10062

// replace creates the stream for an attempt. It first deletes an existing stream that is incomplete
// or empty.
func (s streamSpec) replace(ctx context.Context, nc *nats.Conn, js jetstream.JetStream, attempt string, r RestoreSource) error {
	config := s.config()
	config.Metadata = map[string]string{identityKey: r.LogID, restoringKey: attempt}
	for n := 1; ; n++ {
		if err := s.clear(ctx, js); err != nil {
			return err
		}
		err := upload(ctx, nc, js, config, r)
		if !hasCode(err, restoreFailed) || n == attempts || ctx.Err() != nil {
			return s.addRemedy(err)
		}
	}
}

// clear deletes an incomplete stream of an earlier restore, or a stream that never had a commit.
func (s streamSpec) clear(ctx context.Context, js jetstream.JetStream) error {
	stream, err := getStream(ctx, js, s.name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	info := stream.CachedInfo()
	if info.Config.Metadata[restoringKey] == "" {
		return s.replaceEmpty(ctx, js, info)
	}
	return s.delete(ctx, js)
}

func (s streamSpec) delete(ctx context.Context, js jetstream.JetStream) error {
	if err := js.DeleteStream(ctx, s.name); err != nil {
		return fmt.Errorf("removing the empty stream %s: %w: %w", s.name, ErrUnavailable, err)
	}
	return nil
}

func (s streamSpec) checkUnused(info *jetstream.StreamInfo) error {
	if info.State.LastSeq == 0 {
		return nil
	}
	return fmt.Errorf("%w: stream %s has the log %s with commits up to %d; delete that stream first if nobody needs it, or name another server",
		ErrExists, s.name, identity(info), info.State.LastSeq)
}

// closedSubject is the subject of a stream that accepts no commits because it will be deleted.
const closedSubject = "scute.replaced"

// replaceEmpty deletes a stream that never had a commit. A process may have opened it as its log,
// so replaceEmpty first makes the stream refuse commits. If the stream turns out to have a commit,
// or cannot be deleted, replaceEmpty makes it accept commits again.
func (s streamSpec) replaceEmpty(ctx context.Context, js jetstream.JetStream, info *jetstream.StreamInfo) error {
	before, shut := info.Config, info.Config
	shut.Subjects = []string{closedSubject}
	wasShut := slices.Equal(before.Subjects, shut.Subjects) // by a restore whose process died
	if wasShut {
		before.Subjects = subjects()
	}
	err := s.checkUnused(info)
	if err != nil && !wasShut {
		return err
	}
	if err == nil {
		err = s.deleteClosed(ctx, js, shut)
	}
	if err == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTimeout)
	defer cancel()
	if _, failed := js.UpdateStream(ctx, before); failed != nil && !errors.Is(failed, jetstream.ErrStreamNotFound) {
		return fmt.Errorf("%w; stream %s may accept no commits now: set its subjects to %v: %w", err, s.name, before.Subjects, failed)
	}
	return err
}

func (s streamSpec) deleteClosed(ctx context.Context, js jetstream.JetStream, shut jetstream.StreamConfig) error {
	if _, err := js.UpdateStream(ctx, shut); err != nil {
		return fmt.Errorf("closing the empty stream %s: %w: %w", s.name, ErrUnavailable, err)
	}
	stream, err := getStream(ctx, js, s.name)
	if err != nil {
		return translateError(s.name, err)
	}
	if err := s.checkUnused(stream.CachedInfo()); err != nil {
		return err
	}
	return s.delete(ctx, js)
}
