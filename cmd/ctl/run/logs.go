package run

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
)

// printed writes what the commands and Jobs of a task printed, one attempt after the other.
func printed(_ context.Context, p *place, r *Run, task string) error {
	if p.Flags.Dir == "" {
		return cli.Usagef("--task needs --local or --log: what commands print is kept in the folder of the log")
	}
	if !slices.ContainsFunc(r.Tasks(), func(t v1alpha1.TaskStatus) bool { return t.Name == task }) {
		return cli.Usagef("run %s has no task %q", key(r), task)
	}
	files, err := outputs(filepath.Join(p.Flags.Dir, "runs", filepath.FromSlash(r.ID)), task)
	if err != nil {
		return err
	}
	if len(files) == 0 {
		p.Env.Notef("Task %s has printed nothing.", task)
	}
	for _, file := range files {
		if len(files) > 1 {
			p.Env.Notef("%s:", filepath.Base(file))
		}
		if err := copyFile(p.Env.Out, file); err != nil {
			return err
		}
	}
	return nil
}

// outputs are the files of a task in the folder of its run, the oldest first: TASK-1.log, TASK@HOOK-1.log, TASK-undo1.log.
func outputs(folder, task string) ([]string, error) {
	entries, err := os.ReadDir(folder)
	if err != nil && !os.IsNotExist(err) {
		return nil, fmt.Errorf("reading what the run has printed: %w", err)
	}
	name := regexp.MustCompile("^" + regexp.QuoteMeta(strings.ReplaceAll(task, "/", "+")) + `(@.+)?-(undo)?\d+(-pods)?\.log$`)
	type file struct {
		path string
		at   int64
	}
	var files []file
	for _, e := range entries {
		if info, err := e.Info(); err == nil && name.MatchString(e.Name()) {
			files = append(files, file{filepath.Join(folder, e.Name()), info.ModTime().UnixNano()})
		}
	}
	slices.SortFunc(files, func(a, b file) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.path, b.path)) })
	paths := make([]string, len(files))
	for i, f := range files {
		paths[i] = f.path
	}
	return paths, nil
}

func copyFile(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading what the run has printed: %w", err)
	}
	defer f.Close()
	_, err = io.Copy(w, f)
	return err
}
