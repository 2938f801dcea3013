package kit

import (
	"time"

	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
)

// Wait is whether a command waits for the daemon's answer, and how long.
type Wait struct {
	Wait    bool
	Timeout time.Duration
}

// AddFlags adds --wait and --timeout.
func (w *Wait) AddFlags(f *pflag.FlagSet, timeout time.Duration) {
	f.BoolVar(&w.Wait, "wait", true, "Wait for the daemon's answer")
	f.DurationVar(&w.Timeout, "timeout", timeout, "How long to wait for it")
}

// Validate names the flag and the remedy.
func (w *Wait) Validate() error {
	if w.Timeout <= 0 {
		return cli.Usagef("--timeout is %s: it must be greater than zero", w.Timeout)
	}
	return nil
}
