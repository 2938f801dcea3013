package backup

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"

	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

// DamageError lists the parts of a backup that are damaged.
type DamageError struct {
	Dir      string
	Problems []string
	// HashesOnly is set if only the hashes are damaged: the commits are intact and can be restored.
	HashesOnly bool
}

const maxShownProblems = 20

func (e *DamageError) Error() string {
	lines := e.Problems[:min(len(e.Problems), maxShownProblems)]
	more := ""
	if n := len(e.Problems) - len(lines); n > 0 {
		more = fmt.Sprintf("\n  and %d more", n)
	}
	remedy := "Keep it. Use another copy, or back up the log to another folder."
	if e.HashesOnly {
		remedy = "All commits are intact. Start the next backup in another folder."
	}
	return fmt.Sprintf("the backup in %s is damaged:\n  %s%s\n%s", e.Dir, strings.Join(lines, "\n  "), more, remedy)
}

// Verify reads a whole backup and checks that it is unchanged: every file by its SHA-256, every
// commit by the tree of the log. It fails with a DamageError. progress may be nil.
func Verify(ctx context.Context, dir string, progress func(seq, last uint64)) (Manifest, error) {
	m, err := Read(dir)
	if err != nil {
		return m, err
	}
	return m, verify(ctx, dir, m, progress)
}

func verify(ctx context.Context, dir string, m Manifest, progress func(seq, last uint64)) error {
	damage := &DamageError{Dir: dir}
	tree, err := seal.ReadTree(filepath.Join(dir, seal.HashesFile))
	if err != nil {
		damage.Problems = append(damage.Problems, err.Error())
	} else {
		defer tree.Close()
		if root, err := tree.Root(m.Last); err != nil || root != m.Root {
			damage.Problems = append(damage.Problems, fmt.Sprintf("%s: it does not have the hashes of the commits up to %d", seal.HashesFile, m.Last))
		}
	}
	ofHashes := len(damage.Problems)
	v := seal.NewVerifier(m.Checkpoint(), nil, tree)
	err = Each(ctx, dir, m, func(r eventlog.Record) error {
		if progress != nil {
			progress(r.Seq, m.Last)
		}
		return v.Add(r)
	}, func(problem error) error {
		damage.Problems = append(damage.Problems, problem.Error())
		return nil
	})
	if err != nil {
		return err
	}
	report, err := v.Report()
	if err != nil {
		return err
	}
	for _, f := range report.Findings {
		damage.Problems = append(damage.Problems, m.location(f.First)+": "+f.String())
	}
	damage.HashesOnly = len(damage.Problems) == ofHashes // the root in the manifest is enough to verify the commits
	if len(damage.Problems) > 0 {
		return damage
	}
	return nil
}
