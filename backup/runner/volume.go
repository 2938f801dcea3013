package runner

import (
	"context"
	"io"
	"sync"

	"scute.dev/backup/schedule"
)

// open opens the destination of a schedule.
func (r *Runner) open(ctx context.Context, spec *schedule.Spec) (Store, error) {
	if spec.Destination.Bucket != "" {
		return r.Destination(ctx, spec)
	}
	of := *spec
	opened, err := runGuarded(ctx, &r.volume, func() (Store, error) { return r.Destination(ctx, &of) })
	if err != nil {
		return nil, err
	}
	return &volumeStore{opened, &r.volume}, nil
}

// volumeStore is a store on the volume. Its methods return if the volume hangs.
type volumeStore struct {
	Store
	volume *guardedVolume
}

// Put implements store.Store.
func (w *volumeStore) Put(ctx context.Context, name string, from io.ReaderAt, size int64) error {
	_, err := runGuarded(ctx, w.volume, func() (none struct{}, err error) {
		return none, w.Store.Put(ctx, name, &boundedReaderAt{ctx, from}, size)
	})
	return err
}

// boundedReaderAt can be read until ctx ends.
type boundedReaderAt struct {
	ctx  context.Context //nolint:containedctx // the context of one call
	from io.ReaderAt
}

func (b *boundedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if err := b.ctx.Err(); err != nil {
		return 0, err
	}
	return b.from.ReadAt(p, off)
}

// Get implements store.Store.
func (w *volumeStore) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	from, err := runGuarded(ctx, w.volume, func() (io.ReadCloser, error) { return w.Store.Get(ctx, name) })
	if err != nil {
		return nil, err
	}
	return &volumeFile{from, ctx, w.volume}, nil
}

// volumeFile is an open file on the volume.
type volumeFile struct {
	io.ReadCloser
	ctx    context.Context //nolint:containedctx // the context of one call
	volume *guardedVolume
}

// Read implements io.Reader. The work reads into separate memory, because it may still be running after Read has returned.
func (r *volumeFile) Read(p []byte) (int, error) {
	n := len(p)
	part, err := runGuarded(r.ctx, r.volume, func() ([]byte, error) {
		part := make([]byte, n)
		n, err := r.ReadCloser.Read(part)
		return part[:n], err
	})
	return copy(p, part), err
}

// List implements store.Store.
func (w *volumeStore) List(ctx context.Context, folder string, fn func(name string) error) error {
	var mu sync.Mutex
	left := false
	_, err := runGuarded(ctx, w.volume, func() (none struct{}, err error) {
		return none, w.Store.List(ctx, folder, func(name string) error {
			mu.Lock()
			defer mu.Unlock()
			if left {
				return errVolumeHangs
			}
			return fn(name)
		})
	})
	mu.Lock()
	defer mu.Unlock()
	left = true
	return err
}

// Delete implements store.Store.
func (w *volumeStore) Delete(ctx context.Context, name string) error {
	_, err := runGuarded(ctx, w.volume, func() (none struct{}, err error) { return none, w.Store.Delete(ctx, name) })
	return err
}
