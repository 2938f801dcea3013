// Command scutectl asks scute for what a human wants, and shows what the log says of it. It is a plugin of kubectl too,
// as kubectl-scute.
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
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // a second Ctrl-C ends the process at once
	return app.Run(ctx, cli.System(app.Name(os.Args[0]), version), os.Args[1:])
}
