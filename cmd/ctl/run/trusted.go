package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/connect"
)

// trustVar adds the option that confirms that a folder from elsewhere is trusted.
func (d *deps) trustVar(f *pflag.FlagSet) {
	f.BoolVar(&d.trust, "trust-folder", false, "Drive runs of a folder that was not created by this user, on this machine, at this path. Local runs")
}

// confirmTrust asks for confirmation if this user has not created the folder on this machine, because its runs have the user's permissions. The known
// folders are in a file of the user, and not in the folder, because the user who creates a folder can write anything into it.
func (l *local) confirmTrust(ctx context.Context, log *connect.Log) error {
	head, err := log.Head(ctx)
	if err != nil {
		return err
	}
	dir, err := filepath.Abs(l.Flags.Dir)
	if err != nil {
		return err
	}
	config, err := os.UserConfigDir()
	file, line := filepath.Join(config, "scute", "folders"), log.ID()+" "+dir
	var known []byte
	if err == nil {
		if known, err = os.ReadFile(file); errors.Is(err, os.ErrNotExist) { //nolint:gosec // the user's own
			err = nil
		}
	}
	if slices.Contains(strings.Split(string(known), "\n"), line) {
		return nil
	}
	if head > 0 && !l.trust {
		l.Env.Notef("The log in %s was not created by this user, on this machine, at this path. Its runs execute the commands that are stored in it, with your permissions. Review them first: %s",
			dir, l.Env.Hint("get", "runs", "--log", l.Flags.Dir))
		if err := l.ConfirmBy("--trust-folder", "Drive its runs?", "drive its runs"); err != nil {
			return err
		}
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(file), 0o700)
	}
	if err == nil {
		err = os.WriteFile(file, append(known, line+"\n"...), 0o600)
	}
	if err != nil {
		l.Env.Notef("The folder could not be remembered as yours, so you will be asked again: %v", err)
	}
	return nil
}
