package histories

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"path/filepath"

	"scute.dev/test/assets"
)

// Demo writes a log for `scutectl ui --local` with content for each page: histories of each domain, and runs of the
// examples, which are the newest.
func Demo(ctx context.Context, dir, scutectl string) error {
	root, err := assets.Root()
	if err != nil {
		return err
	}
	err = Write(ctx, filepath.Join(dir, ".scute"), nil,
		"mover/moved-back", "mover/rolled-back-and-killed",
		"pause/request/timed-out",
		"remediator/two-of-five", "remediator/mass-failure",
		"remediator/quorum-lost",
	)
	if err != nil {
		return err
	}
	for _, example := range []string{"01-order", "03-retry", "04-rollback", "05-ignore-children", "06-pause", "07-alternative", "08-hooks", "09-approval"} {
		cmd := exec.CommandContext(ctx, scutectl, "run", "-f", filepath.Join(root, "docs", "examples", example+".yaml"), "--local", "--trust-folder")
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		const wrongUse = 2 // any other status is the result of the run
		if exit := new(exec.ExitError); err != nil && (!errors.As(err, &exit) || exit.ExitCode() == wrongUse) {
			return fmt.Errorf("running example %s: %w\n%s", example, err, out)
		}
	}
	return nil
}
