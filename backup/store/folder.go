package store

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
)

// Folder stores files below a folder, even if a name or a symbolic link leads outside.
type Folder struct{ root *os.Root }

// OpenFolder opens an existing folder. The caller closes it.
func OpenFolder(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, volumeError(err)
	}
	return &Folder{root}, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

func volumeError(err error) error {
	if err == nil || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return &Error{
		Reason: "VolumeFailed", Field: FieldVolume, Message: err.Error(), Next: "check whether the volume of scuted is full or read-only",
		err: err,
	}
}

// Put implements Store. The file is written completely or not at all, and synced.
func (f *Folder) Put(ctx context.Context, name string, from io.ReaderAt, size int64) error {
	_, err := f.Write(ctx, name, io.NewSectionReader(from, 0, size))
	return err
}

// Write implements Store as Put does.
func (f *Folder) Write(ctx context.Context, name string, from io.Reader) (int64, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	if err := f.root.MkdirAll(path.Dir(name), 0o700); err != nil {
		return 0, volumeError(err)
	}
	unfinished := name + unfinishedSuffix
	n, err := f.writeFile(unfinished, &cancelableReader{ctx, from})
	if err == nil {
		err = f.root.Rename(unfinished, name)
	}
	if err != nil { // otherwise retries would fill the volume
		_ = f.root.Remove(unfinished)
		return 0, volumeError(err)
	}
	return n, volumeError(f.sync(path.Dir(name)))
}

// cancelableReader stops when ctx ends, because a large file takes long on a slow volume.
type cancelableReader struct {
	ctx  context.Context //nolint:containedctx // the context of one call
	from io.Reader
}

func (r *cancelableReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	return r.from.Read(p)
}

const unfinishedSuffix = ".unfinished"

func (f *Folder) writeFile(name string, from io.Reader) (int64, error) {
	out, err := f.root.OpenFile(name, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return 0, err
	}
	n, err := io.Copy(out, from)
	if err == nil {
		err = out.Sync()
	}
	return n, errors.Join(err, out.Close())
}

// sync also syncs the parents of a folder, so that their entries are durable.
func (f *Folder) sync(dir string) error {
	for {
		d, err := f.root.Open(dir)
		if err != nil {
			return err
		}
		if err := errors.Join(d.Sync(), d.Close()); err != nil {
			return err
		}
		if dir == "." {
			return nil
		}
		dir = path.Dir(dir)
	}
}

// Get implements Store.
func (f *Folder) Get(ctx context.Context, name string) (io.ReadCloser, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	file, err := f.root.Open(name)
	if err != nil {
		return nil, volumeError(err)
	}
	return file, nil
}

// List implements Store.
func (f *Folder) List(ctx context.Context, folder string, fn func(name string) error) error {
	err := fs.WalkDir(f.root.FS(), folder, func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case d.IsDir():
			return nil
		}
		return fn(strings.TrimSuffix(name, unfinishedSuffix))
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return volumeError(err)
}

// Delete implements Store. It also deletes the folders that are then empty.
func (f *Folder) Delete(ctx context.Context, name string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, file := range []string{name, name + unfinishedSuffix} {
		if err := f.root.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return volumeError(err)
		}
	}
	f.removeEmpty(path.Dir(name))
	return nil
}

// removeEmpty deletes a folder and its parents, up to the first one that is not empty.
func (f *Folder) removeEmpty(dir string) {
	for dir != "." && f.root.Remove(dir) == nil {
		dir = path.Dir(dir)
	}
}
