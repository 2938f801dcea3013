package kit

import (
	"time"

	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/internal/timespan"
)

// Wait contains whether and how long a command waits.
type Wait struct {
	Wait    bool
	Timeout time.Duration
}

// AddFlags adds --wait and --timeout. what completes "Wait": "for the daemon's answer".
func (w *Wait) AddFlags(f *pflag.FlagSet, timeout time.Duration, what string) {
	f.BoolVar(&w.Wait, "wait", true, "Wait "+what)
	f.DurationVar(&w.Timeout, "timeout", timeout, "How long to wait for it")
}

// Validate rejects a timeout that is not positive.
func (w *Wait) Validate() error {
	if w.Timeout <= 0 {
		return cli.Usagef("--timeout is %s: it must be greater than zero", timespan.Text(w.Timeout))
	}
	return nil
}
