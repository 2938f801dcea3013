package logcmd

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/cmd/ctl/fact"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/internal/timespan"
)

// closeTimeout is how long the daemon may take: it answers within seconds, or after a restart.
const closeTimeout = 2 * time.Minute

type closeOptions struct {
	deps
	Reason  string
	Request bool
	Wait    kit.Wait
}

func newCmdClose(env *cli.Env) *cobra.Command {
	o := &closeOptions{}
	cmd := &cobra.Command{
		Use:   "close --reason WHY",
		Short: "Close the open epoch of the log, and continue the log in a new stream",
		Long: `Close the open epoch of the log, and continue the log in a new stream.

Sequences continue, and the closed epoch is still read and verified with the rest: see the epochs with "log epochs". The new
stream has room for as much as the closed one was allowed, and the volume or the NATS server needs space for both. A closed
epoch is sealed: it is not appended to any more, and it cannot be opened again.

The log in a daemon's pod is closed by the daemon: the command records that you ask for it, and waits for the answer. Run again
while there is none, it waits for the same. It needs the token of operators.

Elsewhere the command closes the epoch itself. The daemon may continue meanwhile: what it appends waits for a moment. If the command
dies in the middle, the daemon ends what it began, and so does the command when it is run again. On a NATS server it needs the
permissions of the daemon, and those for the next stream; with --request those of an operator, and the daemon closes the epoch.`,
		Example: kit.Examples(env, "$ log close --reason 'end of 2026'", "$ log close --local --reason 'end of 2026'",
			"$ log close --nats tls://nats:4222 --nats-creds daemon.creds --reason 'nearly full'"),
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return interrupted(cmd.Context(), o.run(cmd.Context())) },
	}
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().StringVar(&o.Reason, "reason", "", "Why: it is recorded in the log")
	cmd.Flags().BoolVar(&o.Request, "request", false, "Ask the daemon to close it, also where the command could do it itself")
	o.Wait.AddFlags(cmd.Flags(), closeTimeout, "for the daemon's answer")
	return cmd
}

func (o *closeOptions) run(ctx context.Context) error {
	if o.Reason == "" {
		return cli.Usagef("--reason is missing: say why the epoch is closed; it is recorded in the log")
	}
	if err := o.Wait.Validate(); err != nil {
		return err
	}
	if o.Request && o.Flags.Dir != "" {
		return cli.Usagef("--request is for the log of a daemon that runs: leave it out, and the command closes the epoch of the log in the folder")
	}
	log, err := o.openToAppend(ctx)
	if err != nil {
		return err
	}
	defer log.Close()
	var cluster *connect.Cluster
	if !o.Flags.LogAlone() {
		if cluster, err = o.Flags.Cluster(); err != nil {
			return err
		}
	}
	c := eventlog.Closing{Actor: connect.Actor(ctx, cluster), Reason: o.Reason, Time: o.Env.Now()}
	if log.Guarded || o.Request {
		return o.ask(ctx, log, c)
	}
	before, err := log.Epochs(ctx)
	if err != nil {
		return err
	}
	switch err := log.CloseEpoch(ctx, c); {
	case errors.Is(err, eventlog.ErrPermission):
		return fmt.Errorf("%w; or add --request: the daemon closes it then", err)
	case err != nil:
		return err
	}
	return o.closed(ctx, log, before[len(before)-1].Number)
}

// ask has the daemon close the epoch.
func (o *closeOptions) ask(ctx context.Context, log *connect.Log, c eventlog.Closing) error {
	request, err := log.RequestClose(ctx, c)
	if err != nil {
		return err
	}
	what := fmt.Sprintf("epoch %d of log %s at %s", request.Epoch, log.ID(), log.Where)
	if request.Actor != c.Actor || request.Reason != c.Reason {
		o.Env.Notef("%s asked for it already, and is named in the log: %s", fact.Actor(request.Actor), request.Reason)
	}
	if !o.Wait.Wait {
		return o.Env.Linef("requested: the closing of %s", what)
	}
	o.Env.Notef("Waiting up to %s for the daemon to close %s.", timespan.Text(o.Wait.Timeout), what)
	waiting, cancel := context.WithTimeout(ctx, o.Wait.Timeout)
	defer cancel()
	request, err = log.AwaitClose(waiting, request)
	switch {
	case err != nil && waiting.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("the daemon has not closed %s within %s; the request stays in the log, and the daemon answers it when it acts on the log: "+
			"see %s, its log lines and the events on the Lease scuted.scute.dev in kube-system", what, timespan.Text(o.Wait.Timeout), o.Hint("", "log", "epochs"))
	case err != nil:
		return fmt.Errorf("waiting for the daemon to close %s: %w", what, err)
	case request.Refused != "":
		return fmt.Errorf("the daemon does not close %s: %s", what, request.Refused)
	}
	return o.closed(ctx, log, request.Epoch)
}

// closed tells that an epoch was closed.
func (o *closeOptions) closed(ctx context.Context, log *connect.Log, number int) error {
	list, err := log.Epochs(ctx)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(list, func(e eventlog.Epoch) bool { return e.Number == number && !e.Dropped })
	if at < 0 || at == len(list)-1 {
		return fmt.Errorf("epoch %d of the log at %s is still open: run the command again", number, log.Where)
	}
	closed, next := list[at], list[at+1]
	return o.Env.Linef("closed: epoch %d of log %s at %s, commits %d to %d; the log continues in stream %s",
		closed.Number, log.ID(), log.Where, closed.First, closed.Last, next.Stream)
}
