package app

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"scute.dev/cmd/ui/feed"
	"scute.dev/cmd/ui/spool"
	"scute.dev/eventlog"
)

// uiRetry is how long it takes until the log is followed again for the pages.
const uiRetry = 30 * time.Second

// Errors that say why the pages cannot be shown.
var (
	errUIReplays = errors.New("the log is being read: try again in some seconds")
	errUIBroken  = errors.New("the log could not be followed: the log of the daemon says why")
	errUIFull    = errors.New("the log is larger than the pages may keep: raise --ui-max-bytes and the limit of memory, in the chart ui.sizeLimit and resources.limits.memory, or use `scutectl ui`")
)

// copied is the copy of the log that the pages are made of.
type copied struct {
	feed *feed.Feed
	log  interface {
		Floor() *eventlog.Floor
		Replay(ctx context.Context, after uint64, fn func(eventlog.Record) error) (uint64, error)
		Follow(ctx context.Context, after uint64, fn func(eventlog.Record) error) error
	}
	logger *slog.Logger
	state  atomic.Pointer[error]
}

func newCopied(o UIOptions, log *eventlog.Log, logger *slog.Logger) (*copied, error) {
	commits, err := spool.NewIn(o.Dir, o.MaxBytes)
	if err != nil {
		return nil, err
	}
	c := &copied{feed: feed.New(commits), log: log, logger: logger}
	c.set(errUIReplays)
	return c, nil
}

func (c *copied) set(err error) { c.state.Store(&err) }

// unready says why the pages cannot be shown; nil if they can.
func (c *copied) unready() error { return *c.state.Load() }

// follow copies the log until ctx ends. Where that fails the pages say so, and it is tried again.
func (c *copied) follow(ctx context.Context) {
	defer func() {
		if err := c.feed.Commits.Close(); err != nil {
			c.logger.Warn("removing the copy of the log that the pages read", "error", err)
		}
	}()
	for ctx.Err() == nil {
		err := c.copy(ctx)
		if ctx.Err() != nil {
			return
		}
		c.set(errUIBroken)
		if errors.Is(err, spool.ErrFull) {
			c.set(errUIFull)
		}
		c.logger.Error("the pages are not shown; it is tried again", "error", err, "in", uiRetry)
		select {
		case <-ctx.Done():
		case <-time.After(uiRetry):
		}
	}
}

func (c *copied) copy(ctx context.Context) error {
	c.feed.Commits.Begin(c.log.Floor())
	if _, err := c.log.Replay(ctx, c.feed.Commits.Head(), c.feed.Take); err != nil {
		return err
	}
	c.set(nil)
	return c.log.Follow(ctx, c.feed.Commits.Head(), c.feed.Take)
}
