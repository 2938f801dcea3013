package audit

import (
	"context"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog/seal"
)

func newCmdConsistency(env *cli.Env) *cobra.Command {
	o := newOptions(env)
	cmd := &cobra.Command{
		Use:   "consistency OLD NEW",
		Short: "Check whether one checkpoint continues another",
		Long: `Check whether one checkpoint continues another: everything that OLD covers is unchanged in NEW.

OLD and NEW are files. The log, an export or the leaf hashes (--hashes) supply what lies between them. They need not be trusted,
because they are checked against NEW.

Exit status: 0 consistent, 1 not consistent, 2 it could not be checked.`,
		Example: kit.Examples(env, "$ audit consistency may.checkpoint june.checkpoint --key scute.pub --hashes /mnt/audit"),
	}
	o.addFlags(cmd)
	o.format.AddFlag(cmd, "json")
	return o.command(cmd, 2, "two files: the older checkpoint and the newer one", func(ctx context.Context, args []string) error {
		return o.consistency(ctx, args[0], args[1])
	})
}

type consistent struct {
	LogID      string `json:"logID"`
	Old        uint64 `json:"old"`
	New        uint64 `json:"new"`
	Consistent bool   `json:"consistent"`
}

func (o *options) consistency(ctx context.Context, older, newer string) error {
	before, err := o.readCheckpoint(ctx, older)
	if err != nil {
		return err
	}
	after, err := o.readCheckpoint(ctx, newer)
	if err != nil {
		return err
	}
	from, to := before.newest, after.newest
	if from.Size > to.Size {
		return cli.Usagef("%s covers %d commits and %s covers %d: name the older one first", older, from.Size, newer, to.Size)
	}
	ok := from == to
	if from.Size < to.Size {
		if ok, err = o.isContinuation(ctx, from, to); err != nil {
			return err
		}
	}
	out := consistent{from.LogID, from.Size, to.Size, ok}
	switch {
	case o.format.Value != "":
		err = o.format.Print(o.Env.Out, out)
	case ok:
		err = o.Env.Linef("consistent: log %s, the checkpoint at %d continues the one at %d", out.LogID, out.New, out.Old)
	default:
		err = o.Env.Linef("NOT CONSISTENT: log %s, the checkpoint at %d does not continue the one at %d: the same key signed two histories", out.LogID, out.New, out.Old)
	}
	if err != nil || ok {
		return err
	}
	return cli.SilentExit(exitViolated)
}

func (o *options) readCheckpoint(ctx context.Context, file string) (*published, error) {
	with := *o
	with.checkpoint = file
	return with.published(ctx)
}

// isContinuation reports whether the log of the checkpoint to begins with the commits of the
// checkpoint from. It reads the leaf hashes or, without them, all commits.
func (o *options) isContinuation(ctx context.Context, from, to seal.Checkpoint) (bool, error) {
	tree, err := o.tree()
	if err != nil {
		return false, err
	}
	if tree != nil {
		defer tree.Close()
		return seal.Continues(tree, from, to)
	}
	verifier := seal.NewVerifier(to, []seal.Checkpoint{from}, nil)
	if err := o.each(ctx, verifier.Add); err != nil {
		return false, err
	}
	return verifier.Continues()
}
