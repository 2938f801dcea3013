package audit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

func newCmdCheck(env *cli.Env) *cobra.Command {
	o := newOptions(env)
	cmd := &cobra.Command{
		Use:   "check PROOF",
		Short: "Check a proof without the log, and show the event that it proves",
		Long: `Check a proof without the log and without a cluster, and show the event that it proves. PROOF is a file, or - for standard input.

Exit status: 0 the proof is valid, 1 it is not, 2 it could not be checked.`,
		Example: kit.Examples(env, "$ audit check event.tlog-proof --key scute.pub"),
	}
	cmd.Flags().StringVar(&o.key, "key", "", "Public key of the log, or a file with it")
	o.format.AddFlag(cmd, "json")
	return o.command(cmd, 1, "a proof file", func(_ context.Context, args []string) error { return o.check(args[0]) })
}

type proven struct {
	LogID    string           `json:"logID"`
	Sequence uint64           `json:"sequence"`
	Stored   time.Time        `json:"stored"`
	Subject  string           `json:"subject"`
	Events   []provenEvent    `json:"events,omitempty"`
	By       provenCheckpoint `json:"checkpoint"`
	Key      seal.PublicKey   `json:"key"`
}

type provenCheckpoint struct {
	Size uint64 `json:"size"`
	Root string `json:"root"`
}

type provenEvent struct {
	ID    string    `json:"id"`
	Type  string    `json:"type"`
	Time  time.Time `json:"time"`
	Actor string    `json:"actor,omitempty"`
	// Unverified is true if the actor is only the client's claim.
	Unverified bool `json:"unverified,omitempty"`
	Data       any  `json:"data,omitempty"`
}

func (o *options) check(file string) error {
	if o.key == "" {
		return cli.Usagef("--key is required: a proof must be checked with a public key from another source")
	}
	text, err := o.keyText(nil)
	if err != nil {
		return err
	}
	key, err := seal.ParsePublicKey(text)
	if err != nil {
		return err
	}
	var proof []byte
	if file == "-" {
		proof, err = io.ReadAll(o.Env.In)
	} else {
		proof, err = os.ReadFile(file)
	}
	if err != nil {
		return fmt.Errorf("reading the proof: %w", err)
	}
	m, c, err := seal.CheckProof(proof, key)
	switch {
	case errors.Is(err, seal.ErrProof), errors.Is(err, seal.ErrSignature):
		o.Env.Notef("%s: %v", o.Env.Name, err)
		return cli.SilentExit(exitViolated)
	case err != nil:
		return err
	}
	p := proven{
		LogID: c.LogID, Sequence: m.Seq, Stored: m.Stored, Subject: m.Subject(), By: provenCheckpoint{Size: c.Size, Root: c.Root.String()}, Key: key,
	}
	events, err := m.Events()
	if err != nil {
		o.Env.Notef("The commit is proven, but its events cannot be read: %v", err)
	}
	for _, e := range events {
		p.Events = append(p.Events, provenEvent{ID: e.ID, Type: e.Type, Time: e.Time, Actor: e.Actor, Unverified: eventlog.Unverified(e.Actor), Data: e.Data})
	}
	if o.format.Value != "" {
		return o.format.Print(o.Env.Out, p)
	}
	return o.proven(p)
}

func (o *options) proven(p proven) error {
	err := cmp.Or(
		o.Env.Linef("Proven        commit %d of log %s, by the checkpoint at %d", p.Sequence, p.LogID, p.By.Size),
		o.Env.Linef("Stored        %s on %s", p.Stored.Format(time.RFC3339Nano), p.Subject))
	for _, e := range p.Events {
		err = cmp.Or(err,
			o.Env.Linef("Event         %s", e.ID), o.Env.Linef("  type        %s", e.Type), o.Env.Linef("  time        %s", e.Time.Format(time.RFC3339Nano)),
			o.Env.Linef("  actor       %s", kit.Actor(e.Actor)), o.Env.Linef("  data        %s", e.Data))
	}
	return err
}
