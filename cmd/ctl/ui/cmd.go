package ui

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"scute.dev/cmd/ctl/audit"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/ui/feed"
	"scute.dev/ui/page"
)

// shutdown is how long open connections may take to end.
const shutdown = 2 * time.Second

type options struct {
	*kit.Kit
	From            string
	Port            int
	ReadOnly        bool
	Key, Checkpoint string
}

// NewCmd returns `scutectl ui`.
func NewCmd(env *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "ui",
		Short: "Show in a browser what happens, what waits for you, and any moment of the past",
		Long: `Show in a browser what happens, what waits for you, and any moment of the past.

The pages are served on 127.0.0.1, to anybody who has the token in the printed address. The log is read from the daemon's pod through
a port-forward, with your own kubeconfig; or from a folder (--local, --log), a NATS server (--nats), or a file that
` + env.Hint("log", "export") + ` wrote (--from). Nothing is installed in the cluster. In a management cluster the pages can pause and
resume runs and policies, abort moves, delete Pauses, and hold, release and abort remediations: with your own credentials, after a
confirmation. --read-only turns this off. For everything else each page shows the command.`,
		Example: kit.Examples(env, "$ ui", "$ ui --local", "$ ui --from export.jsonl --port 8080"),
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.flags(env, cmd)
	return cmd
}

func (o *options) flags(env *cli.Env, cmd *cobra.Command) {
	o.Kit = kit.New(env, cmd, "")
	cmd.Flags().StringVar(&o.From, "from", "", "Export of the log (log export) to read instead of a log")
	cmd.Flags().StringVar(&o.Key, "key", "", "Public key of the log, or a file with it, for proofs of events; the key published in the cluster if empty")
	cmd.Flags().StringVar(&o.Checkpoint, "checkpoint", "", "File with one or more checkpoints of the log, for proofs of events; the checkpoint published in the cluster if empty")
	cmd.Flags().IntVar(&o.Port, "port", 0, "Port on 127.0.0.1; a free one if 0")
	cmd.Flags().BoolVar(&o.ReadOnly, "read-only", false, "Do not permit changes from the pages")
}

func (o *options) validate() error {
	if err := o.Flags.Check(); err != nil {
		return err
	}
	switch {
	case o.From != "" && o.Flags.LogOnly():
		return cli.Usagef("--from and %s cannot be used together: name one log", "--local, --log and --nats")
	case o.Port < 0 || o.Port > 65535:
		return cli.Usagef("--port is %d: it must be between 0 and 65535", o.Port)
	}
	return nil
}

func (o *options) run(ctx context.Context) error {
	if err := o.validate(); err != nil {
		return err
	}
	commits, err := feed.NewSpool()
	if err != nil {
		return err
	}
	defer commits.Close()
	f, ready := feed.New(commits), make(chan struct{})
	group, reading := errgroup.WithContext(ctx)
	group.Go(func() error { return o.read(reading, f, func() { close(ready) }) })
	group.Go(func() error {
		select {
		case <-ready:
			return o.serve(reading, f)
		case <-reading.Done():
			return nil
		}
	})
	if err := group.Wait(); ctx.Err() == nil {
		return err
	}
	return nil // an interruption is not an error
}

// desk returns the desk that performs the actions of the pages. It returns nil if the pages permit
// no actions: with --read-only, for a folder or an export, and without a management cluster.
func (o *options) desk() *desk {
	if o.ReadOnly || o.From != "" || o.Flags.Dir != "" {
		return nil
	}
	if _, err := o.Flags.Cluster(); err != nil { // there is only a NATS server
		return nil
	}
	return newDesk(o.Kit)
}

// logKit returns a kit with the clock of the log. For an export, this clock stops at the last
// commit, because later changes are unknown.
func (o *options) logKit(f *feed.Feed) *kit.Kit {
	if o.From == "" {
		return o.Kit
	}
	k, env := *o.Kit, *o.Env
	env.Now = func() time.Time { return f.Commits.Stored(f.Commits.Head()) }
	k.Env = &env
	return &k
}

func (o *options) serve(ctx context.Context, f *feed.Feed) error {
	site, err := page.New(f, o.logKit(f), o.where())
	if err != nil {
		return err
	}
	site.NoCommands, site.Prover = o.From != "", audit.NewProver(o.Kit, o.Key, o.Checkpoint, o.From)
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(o.Port)))
	if err != nil {
		return fmt.Errorf("listening for a browser: %w: choose another port with --port", err)
	}
	host, token := listener.Addr().String(), rand.Text()
	_, port, _ := net.SplitHostPort(host)
	handler, err := newHandler(site, f, o.desk(), token, host, "localhost:"+port)
	if err != nil {
		return errors.Join(err, listener.Close())
	}
	server := &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second, BaseContext: func(net.Listener) context.Context { return ctx }}
	context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdown)
		defer cancel()
		_ = server.Shutdown(ending)
	})
	address := url.URL{Scheme: "http", Host: host, Path: "/", RawQuery: url.Values{"token": {token}}.Encode()}
	if err := o.Env.Linef("%s", &address); err != nil {
		return errors.Join(err, listener.Close())
	}
	o.Env.Notef("Open this address in a browser on this machine. It shows %s. Press Ctrl-C to stop.", o.where())
	if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
