package store

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"scute.dev/mover/archive"
)

const (
	// uploads is how many files are copied at once.
	uploads = 8
	// mostHead bounds what is read of an index to learn which backup it is of, mostFiles the files of one backup, whose names are kept in
	// memory, and mostListed the files that are looked at to find backups.
	mostHead   = 64 << 10
	mostFiles  = 200_000
	mostListed = 1_000_000
)

// Upload copies a complete backup from a folder to a place of a store; its list of checksums is last. It returns the bytes.
func Upload(ctx context.Context, to Store, place, dir string) (bytes int64, err error) {
	files, err := archive.Files(dir)
	if err != nil {
		return 0, err
	}
	var mu sync.Mutex
	put := func(ctx context.Context, file string) error {
		n, err := upload(ctx, to, path.Join(place, file), filepath.Join(dir, filepath.FromSlash(file)))
		mu.Lock()
		defer mu.Unlock()
		bytes += n
		return err
	}
	last := len(files) - 1
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for _, file := range files[:last] {
		group.Go(func() error { return put(limited, file) })
	}
	if err := group.Wait(); err != nil {
		return 0, err
	}
	return bytes, put(ctx, files[last])
}

func upload(ctx context.Context, to Store, name, file string) (int64, error) {
	f, err := os.Open(file) //nolint:gosec // a file of the backup that was just made
	if err != nil {
		return 0, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), to.Put(ctx, name, f, info.Size())
}

// Complete reads the beginning of the index of the backup at a place; the zero value where none is complete.
func Complete(ctx context.Context, in Store, place string) (archive.Head, error) {
	sums, err := in.Get(ctx, path.Join(place, archive.SumsFile))
	if errors.Is(err, ErrNotFound) {
		return archive.Head{}, nil
	}
	if err != nil {
		return archive.Head{}, err
	}
	_ = sums.Close()
	return identify(ctx, in, place)
}

// identify reads the beginning of the index at a place; the zero value where there is no index.
func identify(ctx context.Context, in Store, place string) (archive.Head, error) {
	index, err := in.Get(ctx, path.Join(place, archive.IndexFile))
	if errors.Is(err, ErrNotFound) {
		return archive.Head{}, nil
	}
	if err != nil {
		return archive.Head{}, err
	}
	defer index.Close()
	return archive.ReadHead(io.LimitReader(index, mostHead))
}

// Remove removes the files of the backup with this ID from a place, the list of checksums first. What an upload or a removal that did
// not end has left there is removed, too. A place with another backup, or with an index that is none, is ErrForeign, and nothing is removed.
func Remove(ctx context.Context, from Store, place, id string) error {
	there, err := Complete(ctx, from, place)
	if err == nil && there.ID == "" { // its upload, or an earlier removal, did not end
		there, err = identify(ctx, from, place)
	}
	if errors.Is(err, archive.ErrDamaged) { // nobody knows whose it is
		return fmt.Errorf("%s: %w: %w", place, ErrForeign, err)
	}
	if err != nil {
		return err
	}
	if there.ID != "" && there.ID != id {
		return fmt.Errorf("%s: %w", place, ErrForeign)
	}
	files, err := names(ctx, from, place)
	if err != nil {
		return err
	}
	if err := from.Delete(ctx, path.Join(place, archive.SumsFile)); err != nil {
		return err
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for _, file := range files {
		if file != archive.SumsFile && file != archive.IndexFile {
			group.Go(func() error { return from.Delete(limited, path.Join(place, file)) })
		}
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return from.Delete(ctx, path.Join(place, archive.IndexFile))
}

// names are the files of a backup that are at a place, relative to it. What no backup has is not among them.
func names(ctx context.Context, in Store, place string) (files []string, err error) {
	err = in.List(ctx, place, func(name string) error {
		file, below := strings.CutPrefix(name, place+"/")
		if below && archive.IsFile(file) {
			files = append(files, file)
		}
		if len(files) > mostFiles {
			return fmt.Errorf("%s has more than %d files", place, mostFiles)
		}
		return nil
	})
	return files, err
}

// Download copies a complete backup from a place of a store to a folder, which is made. What is damaged is found when it is opened.
func Download(ctx context.Context, from Store, place, dir string) error {
	switch head, err := Complete(ctx, from, place); {
	case err != nil:
		return err
	case head.ID == "":
		return fmt.Errorf("%s: %w: file %s, which is written last, is not there", place, archive.ErrIncomplete, archive.SumsFile)
	}
	files, err := names(ctx, from, place)
	if err != nil {
		return err
	}
	group, limited := errgroup.WithContext(ctx)
	group.SetLimit(uploads)
	for _, file := range slices.Compact(slices.Sorted(slices.Values(files))) {
		group.Go(func() error {
			return download(limited, from, path.Join(place, file), filepath.Join(dir, filepath.FromSlash(file)))
		})
	}
	return group.Wait()
}

// Below are the complete backups in the folders below a place, in the order of their last names: those that a BackupSchedule has made are
// in the order of time. Of more than most, the last ones are returned; all is how many there are.
func Below(ctx context.Context, in Store, place string, most int) (places []string, all int, err error) {
	files := 0
	err = in.List(ctx, place, func(name string) error {
		if files++; files > mostListed {
			return fmt.Errorf("%s has more than %d files", place, mostListed)
		}
		if path.Base(name) == archive.SumsFile {
			places = append(places, path.Dir(name))
		}
		return nil
	})
	slices.SortFunc(places, func(a, b string) int {
		return cmp.Or(cmp.Compare(path.Base(a), path.Base(b)), cmp.Compare(a, b))
	})
	return places[max(0, len(places)-most):], len(places), err
}

func download(ctx context.Context, from Store, name, file string) error {
	in, err := from.Get(ctx, name)
	if err != nil {
		return wrap("reading", name, err)
	}
	defer in.Close()
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return err
	}
	out, err := os.OpenFile(file, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600) //nolint:gosec // below the folder: archive.IsFile permits no other name
	if err != nil {
		return err
	}
	if _, err := io.Copy(out, in); err != nil {
		_ = out.Close()
		return wrap("reading", name, err)
	}
	return out.Close()
}
