// Command scuted runs in the management cluster and drives the unfinished work of the event log. It
// embeds the event log, or connects to it.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"scute.dev/cmd/daemon/app"
)

var version = "development"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	options := app.New()
	options.Version = version
	cmd := &cobra.Command{
		Use: "scuted", Short: "scute's daemon for a Cluster API management cluster", Version: version,
		Args: cobra.NoArgs, SilenceUsage: true, SilenceErrors: true,
		RunE: func(*cobra.Command, []string) error { return app.Run(ctx, options) },
	}
	options.AddFlags(cmd.Flags())
	if err := cmd.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "scuted:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}
