package audit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"scute.dev/eventlog"
	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/seal"
)

// source is a log or an export. It can be read only once.
type source struct {
	where, logID string
	// last is the sequence of the last commit at the time when the source was opened.
	last uint64
	// each calls fn with each readable commit, in order.
	each  func(ctx context.Context, fn func(eventlog.Record) error) error
	close func() error
	// unreadable contains errors about lines of an export that cannot be read.
	unreadable []string
}

func (o *options) source(ctx context.Context) (*source, error) {
	if o.export != "" {
		return o.openExport()
	}
	log, err := o.Flags.Log(ctx, o.Env.Err)
	if err != nil {
		return nil, err
	}
	head, err := log.Head(ctx)
	if err != nil {
		return nil, errors.Join(err, log.Close())
	}
	return &source{where: log.Where, logID: log.ID(), last: head, close: log.Close, each: log.Scan}, nil
}

func (o *options) openExport() (*source, error) {
	if o.isBackup() {
		return o.openBackup()
	}
	in := io.NopCloser(o.Env.In)
	if o.export != "-" {
		f, err := os.Open(o.export)
		if err != nil {
			return nil, fmt.Errorf("reading the export: %w", err)
		}
		in = f
	}
	r, err := eventlog.NewExportReader(in)
	if err != nil {
		return nil, errors.Join(err, in.Close())
	}
	s := &source{where: o.export, logID: r.Head.LogID, last: r.Head.Last, close: in.Close}
	s.each = func(ctx context.Context, fn func(eventlog.Record) error) error {
		for ctx.Err() == nil {
			commit, err := r.Next()
			var bad *eventlog.LineError
			switch {
			case errors.Is(err, io.EOF):
				return nil
			case errors.As(err, &bad):
				s.unreadable = append(s.unreadable, bad.Error())
				continue
			case err != nil:
				return err
			}
			if err := fn(commit); err != nil {
				return err
			}
		}
		return ctx.Err()
	}
	return s, nil
}

func (o *options) isBackup() bool {
	info, err := os.Stat(o.export)
	return o.export != "" && err == nil && info.IsDir()
}

func (o *options) openBackup() (*source, error) {
	m, err := backup.Read(o.export)
	if err != nil {
		return nil, err
	}
	s := &source{where: o.export, logID: m.LogID, last: m.Last, close: func() error { return nil }}
	s.each = func(ctx context.Context, fn func(eventlog.Record) error) error {
		return backup.Each(ctx, o.export, m, fn, func(problem error) error {
			s.unreadable = append(s.unreadable, problem.Error())
			return nil
		})
	}
	return s, nil
}

// tree opens the leaf hashes, which are optional.
func (o *options) tree() (*seal.Tree, error) {
	if o.hashes != "" {
		return seal.ReadTree(o.hashes)
	}
	if o.isBackup() {
		return seal.ReadTree(o.export)
	}
	if o.Flags.Dir == "" {
		return nil, nil //nolint:nilnil // leaf hashes are optional
	}
	path := filepath.Join(o.Flags.Dir, seal.Folder, seal.HashesFile)
	if _, err := os.Stat(path); err != nil {
		return nil, nil //nolint:nilnil,nilerr // leaf hashes are optional
	}
	return seal.ReadTree(path)
}
