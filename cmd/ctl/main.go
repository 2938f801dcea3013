// Command scutectl shows runs, moves and remediations, and sends requests and decisions of
// operators. As kubectl-scute it is a plugin of kubectl.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
)

var version = "development"

func main() { os.Exit(run()) }

func run() int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup ignores it
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	// If the reader of a pipe exits, a failed write ends a listing, but a local run continues. SIGPIPE
	// is caught rather than ignored, because commands that tasks run would inherit an ignored signal.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	context.AfterFunc(ctx, func() { // a second Ctrl-C ends the process at once, and a closed terminal sends SIGHUP more than once
		signal.Ignore(syscall.SIGHUP)
		stop()
	})
	return app.Run(ctx, cli.System(app.Name(os.Args[0]), version), os.Args[1:])
}
