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

// where the log is, in words.
func (o *options) where() string {
	return cmp.Or(o.From, o.Flags.Dir, eventlog.Shown(o.Flags.URL), "the log of the daemon in namespace "+o.Flags.ScuteNamespace)
}

// read gives the feed every commit, until ctx ends.
func (o *options) read(ctx context.Context, f *feed.Feed, caughtUp func()) error {
	if o.From == "" {
		return o.Flags.Tail(ctx, o.Env.Err, caughtUp, f.Take)
	}
	if err := o.load(ctx, f); err != nil {
		return err
	}
	caughtUp()
	<-ctx.Done()
	return ctx.Err()
}

// cut tells of an export that ends before the log did: what it has is a moment of the log, but not its last one.
func (o *options) cut(read, last uint64) {
	if read < last {
		o.Env.Notef("%s is not whole: it has the first %d of %d commits. The pages show the log as it was then.", o.From, read, last)
	}
}

// load reads an export.
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
			if _, after := lines.Next(); errors.Is(after, io.EOF) { // it was cut within its last line
				err = io.EOF
			}
		}
		if errors.Is(err, io.EOF) {
			o.cut(f.Commits.Head(), lines.Head.Last)
			return nil
		}
		if err == nil {
			err = f.Take(line.Record())
		}
		if err != nil {
			return fmt.Errorf("reading %s: %w", o.From, err)
		}
	}
	return ctx.Err()
}
