package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"scute.dev/eventlog"
	"scute.dev/ui/feed"
)

func (o *options) where() string {
	return cmp.Or(o.From, o.Flags.Dir, eventlog.RedactURL(o.Flags.URL), "the log of the daemon in namespace "+o.Flags.ScuteNamespace)
}

// read passes every commit to the feed until ctx ends.
func (o *options) read(ctx context.Context, f *feed.Feed, caughtUp func()) error {
	if o.From == "" {
		return o.Flags.Tail(ctx, o.Env.Err, caughtUp, f.Apply)
	}
	if err := o.load(ctx, f); err != nil {
		return err
	}
	caughtUp()
	<-ctx.Done()
	return ctx.Err()
}

func (o *options) load(ctx context.Context, f *feed.Feed) error {
	file, err := os.Open(o.From)
	if err != nil {
		return fmt.Errorf("reading the export: %w", err)
	}
	defer file.Close()
	lines, err := eventlog.NewExportReader(file)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		commit, err := lines.Next()
		if _, bad := errors.AsType[*eventlog.LineError](err); bad && f.Commits.Head() < lines.Head.Last {
			if _, after := lines.Next(); errors.Is(after, io.EOF) { // the export ends within its last line
				err = io.EOF
			}
		}
		if errors.Is(err, io.EOF) {
			if read := f.Commits.Head(); read < lines.Head.Last {
				o.Env.Notef("%s is incomplete: it has the first %d of %d commits. The pages show the log as it was then.", o.From, read, lines.Head.Last)
			}
			return nil
		}
		if err == nil {
			err = f.Apply(commit)
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", o.From, err)
		}
	}
	return ctx.Err()
}
