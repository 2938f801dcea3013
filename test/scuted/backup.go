package scuted

import (
	"context"
	"fmt"
	"os"
)

// LoseLog backs up the log of a stopped daemon, removes its folder, and restores the log there.
func (in *Installation) LoseLog(ctx context.Context, logDir, kept string) error {
	if out, err := in.Scutectl(ctx, "backup", "log", kept, "--log", logDir).CombinedOutput(); err != nil {
		return fmt.Errorf("backing up the log: %w\n%s", err, out)
	}
	if err := os.RemoveAll(logDir); err != nil {
		return err
	}
	if out, err := in.Scutectl(ctx, "restore", "log", kept, "--log", logDir).CombinedOutput(); err != nil {
		return fmt.Errorf("restoring the log: %w\n%s", err, out)
	}
	return nil
}
