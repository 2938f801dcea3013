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
	"sync/atomic"

	"scute.dev/kube"
	"scute.dev/mover/archive"
)

const (
	maxUploads = 8
	// maxFiles limits the files of a backup, because their names are in memory. maxListed limits
	// the files that are listed to find backups.
	maxFiles  = 200_000
	maxListed = 1_000_000
)

// Upload copies a complete backup from a folder to a path in a store, the list of checksums last.
// It returns the number of bytes.
func Upload(ctx context.Context, to Store, place, dir string) (bytes int64, err error) {
	files, err := archive.Files(dir)
	if err != nil {
		return 0, err
	}
	var written atomic.Int64
	put := func(ctx context.Context, file string) error {
		n, err := upload(ctx, to, path.Join(place, file), filepath.Join(dir, filepath.FromSlash(file)))
		written.Add(n)
		return err
	}
	last := len(files) - 1
	if err := kube.ForEach(ctx, maxUploads, files[:last], put); err != nil {
		return 0, err
	}
	err = put(ctx, files[last])
	return written.Load(), err
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

// CompleteHead returns the head of the complete backup at a path, or zero if there is none.
func CompleteHead(ctx context.Context, in Store, place string) (archive.Head, error) {
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

// identify returns the head of the index at a path, or zero if there is none.
func identify(ctx context.Context, in Store, place string) (archive.Head, error) {
	index, err := in.Get(ctx, path.Join(place, archive.IndexFile))
	if errors.Is(err, ErrNotFound) {
		return archive.Head{}, nil
	}
	if err != nil {
		return archive.Head{}, err
	}
	defer index.Close()
	return archive.ReadHead(index)
}

// Remove deletes the files of backup id, the list of checksums first, even after an interrupted
// upload or removal. If the path has another backup or an invalid index, it deletes nothing and
// returns ErrForeign.
func Remove(ctx context.Context, from Store, place, id string) error {
	there, err := CompleteHead(ctx, from, place)
	if err == nil && there.ID == "" { // the upload or an earlier removal was interrupted
		there, err = identify(ctx, from, place)
	}
	if errors.Is(err, archive.ErrDamaged) { // the owner is unknown
		return fmt.Errorf("%s: %w: %w", place, ErrForeign, err)
	}
	if err != nil {
		return err
	}
	if there.ID != "" && there.ID != id {
		return fmt.Errorf("%s: %w", place, ErrForeign)
	}
	files, err := listFiles(ctx, from, place)
	if err != nil {
		return err
	}
	if err := from.Delete(ctx, path.Join(place, archive.SumsFile)); err != nil {
		return err
	}
	files = slices.DeleteFunc(files, func(file string) bool { return file == archive.SumsFile || file == archive.IndexFile })
	err = kube.ForEach(ctx, maxUploads, files, func(ctx context.Context, file string) error { return from.Delete(ctx, path.Join(place, file)) })
	if err != nil {
		return err
	}
	return from.Delete(ctx, path.Join(place, archive.IndexFile))
}

func listFiles(ctx context.Context, in Store, place string) (files []string, err error) {
	err = in.List(ctx, place, func(name string) error {
		file, below := strings.CutPrefix(name, place+"/")
		if below && archive.IsFile(file) {
			files = append(files, file)
		}
		if len(files) > maxFiles {
			return fmt.Errorf("%s has more than %d files", place, maxFiles)
		}
		return nil
	})
	return files, err
}

// Download copies a complete backup to a folder, which it creates. It does not check for damage;
// archive.Open does.
func Download(ctx context.Context, from Store, place, dir string) error {
	switch head, err := CompleteHead(ctx, from, place); {
	case err != nil:
		return err
	case head.ID == "":
		return fmt.Errorf("%s: %w: file %s, which is written last, is missing", place, archive.ErrIncomplete, archive.SumsFile)
	}
	files, err := listFiles(ctx, from, place)
	if err != nil {
		return err
	}
	files = slices.Compact(slices.Sorted(slices.Values(files)))
	return kube.ForEach(ctx, maxUploads, files, func(ctx context.Context, file string) error {
		return download(ctx, from, path.Join(place, file), filepath.Join(dir, filepath.FromSlash(file)))
	})
}

// ListBackups returns the complete backups below a path, sorted by base name, so that those of a
// BackupSchedule are sorted by time. It returns at most the last most ones; all is the total.
func ListBackups(ctx context.Context, in Store, place string, most int) (places []string, all int, err error) {
	files := 0
	err = in.List(ctx, place, func(name string) error {
		if files++; files > maxListed {
			return fmt.Errorf("%s has more than %d files", place, maxListed)
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
		return fmt.Errorf("reading %s: %w", name, err)
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
		return fmt.Errorf("reading %s: %w", name, err)
	}
	return out.Close()
}
