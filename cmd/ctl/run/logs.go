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

// printed writes the output of a task's commands and Jobs, attempt by attempt.
func printed(_ context.Context, p *session, r *Run, task string) error {
	if p.Flags.Dir == "" {
		return cli.Usagef("--task needs --local or --log: what commands print is kept in the folder of the log")
	}
	if err := hasTask(r, task); err != nil {
		return err
	}
	return outputs(p.Flags.Dir, r.ID, task, func(folder *os.Root, files []string) error {
		var all int64
		for _, file := range files {
			if len(files) > 1 {
				p.Env.Notef("%s:", path.Base(file))
			}
			n, err := copyFile(p.Env.Out, folder, file)
			if err != nil {
				return err
			}
			all += n
		}
		if all == 0 {
			p.Env.Notef("Task %s has printed nothing.", task)
		}
		return nil
	})
}

// Printout is the end of the output of one attempt of a task.
type Printout struct {
	Name, Text string
	// Cut reports whether the beginning of the output is missing.
	Cut bool
}

// Printouts returns the output of the last attempts of a task, the oldest first: of at most the
// given number of attempts, and at most the last bytes (most) of each. earlier is the number of
// attempts before them. dir is the folder of the log.
func Printouts(dir, id, task string, attempts int, most int64) (list []Printout, earlier int, err error) {
	err = outputs(dir, id, task, func(folder *os.Root, files []string) error {
		earlier = max(0, len(files)-attempts)
		for _, file := range files[earlier:] {
			one, err := tailOfFile(folder, file, most)
			if err != nil {
				return fmt.Errorf("reading the output of the run: %w", err)
			}
			list = append(list, one)
		}
		return nil
	})
	return list, earlier, err
}

// outputs calls use with the output files of a task, the oldest first: TASK-1.log, TASK@HOOK-1.log, TASK-undo1.log. The id is from a log that may not be
// trusted, so files outside of the folder of the runs cannot be opened.
func outputs(dir, id, task string, use func(folder *os.Root, files []string) error) error {
	folder, err := os.OpenRoot(filepath.Join(dir, "runs"))
	if errors.Is(err, fs.ErrNotExist) {
		return use(nil, nil)
	}
	if err != nil {
		return fmt.Errorf("reading the output of the run: %w", err)
	}
	defer folder.Close()
	entries, err := fs.ReadDir(folder.FS(), id)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("reading the output of the run: %w", err)
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
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = path.Join(id, f.Name())
	}
	return use(folder, paths)
}

func copyFile(w io.Writer, folder *os.Root, file string) (int64, error) {
	f, err := folder.Open(file)
	if err != nil {
		return 0, fmt.Errorf("reading the output of the run: %w", err)
	}
	defer f.Close()
	return io.Copy(w, f)
}

// tailOfFile returns the last bytes of a file.
func tailOfFile(folder *os.Root, file string, most int64) (Printout, error) {
	f, err := folder.Open(file)
	if err != nil {
		return Printout{}, err
	}
	defer f.Close()
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return Printout{}, err
	}
	begin := max(0, size-most)
	data, err := io.ReadAll(io.NewSectionReader(f, begin, most))
	return Printout{Name: path.Base(file), Text: strings.ToValidUTF8(string(data), ""), Cut: begin > 0}, err
}
