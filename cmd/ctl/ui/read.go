package ui

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"scute.dev/eventlog"
	"scute.dev/eventlog/export"
	"scute.dev/ui/feed"
)

// where returns the location of the log in words.
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

// load passes the commits of an export to the feed.
func (o *options) load(ctx context.Context, f *feed.Feed) error {
	file, err := os.Open(o.From)
	if err != nil {
		return fmt.Errorf("reading the export: %w", err)
	}
	defer file.Close()
	lines, err := export.NewReader(file)
	if err != nil {
		return err
	}
	for ctx.Err() == nil {
		line, err := lines.Next()
		var bad *export.LineError
		if errors.As(err, &bad) && f.Commits.Head() < lines.Head.Last {
			if _, after := lines.Next(); errors.Is(after, io.EOF) { // the export was truncated within its last line
				err = io.EOF
			}
		}
		if errors.Is(err, io.EOF) {
			if read, last := f.Commits.Head(), lines.Head.Last; read < last {
				o.Env.Notef("%s is incomplete: it has the first %d of %d commits. The pages show the log as it was then.", o.From, read, last)
			}
			return nil
		}
		if err == nil {
			err = f.Apply(line.Record())
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", o.From, err)
		}
	}
	return ctx.Err()
}
