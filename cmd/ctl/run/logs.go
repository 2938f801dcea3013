package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"scute.dev/cmd/ctl/cli"
)

func printed(_ context.Context, p *session, r *Run, task string) error {
	if p.Flags.Dir == "" {
		return cli.Usagef("--task needs --local or --log: what commands print is kept in the folder of the log")
	}
	if err := hasTask(r, task); err != nil {
		return err
	}
	files, err := outputs(p.Flags.Dir, r.ID, task)
	var all int64
	for i := 0; i < len(files) && err == nil; i++ {
		if len(files) > 1 {
			p.Env.Notef("%s:", path.Base(files[i]))
		}
		err = withOutput(p.Flags.Dir, files[i], func(f *os.File) error {
			n, err := io.Copy(p.Env.Out, f)
			all += n
			return err
		})
	}
	if err == nil && all == 0 {
		p.Env.Notef("Task %s has printed nothing.", task)
	}
	return err
}

// Printout is the output of one attempt of a task, or the end of a long output.
type Printout struct {
	Name, Text string
	// Cut is true if the beginning of the output is missing.
	Cut bool
}

// Printouts returns the output of the last attempts of a task, oldest first. most limits the bytes
// of each output, and its end is kept. earlier is the number of omitted attempts. dir is the folder
// of the log.
func Printouts(dir, id, task string, attempts int, most int64) (list []Printout, earlier int, err error) {
	files, err := outputs(dir, id, task)
	earlier = max(0, len(files)-attempts)
	for _, file := range files[earlier:] {
		err := withOutput(dir, file, func(f *os.File) error {
			size, err := f.Seek(0, io.SeekEnd)
			if err != nil {
				return err
			}
			begin := max(0, size-most)
			data, err := io.ReadAll(io.NewSectionReader(f, begin, most))
			list = append(list, Printout{Name: path.Base(file), Text: strings.ToValidUTF8(string(data), ""), Cut: begin > 0})
			return err
		})
		if err != nil {
			return nil, 0, err
		}
	}
	return list, earlier, err
}

// outputs returns the paths of a task's output files, oldest first: TASK-1.log, TASK@HOOK-1.log,
// TASK-undo1.log. The id comes from a log that need not be trusted, so outputs opens no file
// outside of the folder of runs.
func outputs(dir, id, task string) (paths []string, err error) {
	var entries []fs.DirEntry
	folder, err := os.OpenRoot(filepath.Join(dir, "runs"))
	if err == nil {
		defer folder.Close()
		entries, err = fs.ReadDir(folder.FS(), id)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the output of the run: %w", err)
	}
	name := regexp.MustCompile("^" + regexp.QuoteMeta(strings.ReplaceAll(task, "/", "+")) + `(@.+)?-(undo)?\d+(-pods)?\.log$`)
	var files []fs.FileInfo
	for _, e := range entries {
		if info, err := e.Info(); err == nil && name.MatchString(e.Name()) {
			files = append(files, info)
		}
	}
	slices.SortFunc(files, func(a, b fs.FileInfo) int {
		return cmp.Or(a.ModTime().Compare(b.ModTime()), cmp.Compare(a.Name(), b.Name()))
	})
	for _, f := range files {
		paths = append(paths, path.Join(id, f.Name()))
	}
	return paths, nil
}

func withOutput(dir, file string, fn func(*os.File) error) error {
	f, err := os.OpenInRoot(filepath.Join(dir, "runs"), file)
	if err == nil {
		defer f.Close()
		err = fn(f)
	}
	if err != nil {
		return fmt.Errorf("reading the output of the run: %w", err)
	}
	return nil
}
