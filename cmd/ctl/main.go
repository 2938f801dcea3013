// Command scutectl shows runs, moves and remediations, and sends an operator's requests and
// decisions. It is a plugin of kubectl too, as kubectl-scute.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
)

// version is set when scutectl is built.
var version = "development"

func main() { os.Exit(run()) }

func run() int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// If the reader of a pipe exits, a listing ends because the write fails, and a local run
	// continues. The signal is caught instead of ignored, because the commands of tasks would
	// inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	context.AfterFunc(ctx, func() { // a second Ctrl-C ends the process at once, and a terminal that is closed sends more than one SIGHUP
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	return app.Run(ctx, cli.System(app.Name(os.Args[0]), version), os.Args[1:])
}
