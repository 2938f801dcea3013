package logcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/connect"
	"scute.dev/internal/projection"
	"scute.dev/internal/usage"
	"scute.dev/projector"
)

// verified is the result of comparing a snapshot with a replay.
type verified struct {
	Snapshot string `json:"snapshot"`
	Sequence uint64 `json:"sequence"`
	// Hash is that of the snapshot's content, Replayed that of a replay.
	Hash     string `json:"sha256"`
	Replayed string `json:"replayedSha256"`
	// Differ are the aggregates that are not the same in both, and usage/NAMESPACE.
	Differ []string `json:"differ,omitempty"`
}

// verify compares the daemon's snapshot with a replay of the log from its first commit.
func (o *replayOptions) verify(ctx context.Context, log *connect.Log) error {
	folder := o.Snapshots
	if folder == "" && o.Flags.Dir != "" {
		folder = projection.Folder(o.Flags.Dir)
	}
	if folder == "" {
		return cli.Usagef("--verify needs the folder of the snapshots: give --snapshots, or --log for the folder of a stopped daemon")
	}
	file := projection.File(folder)
	d, err := projector.Verify(ctx, log, file, projection.New(usage.Limits{}))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%w: the daemon has not taken a snapshot yet, or --snapshots names another folder", err)
	}
	if err != nil {
		return err
	}
	v := verified{Snapshot: file, Sequence: d.Seq, Hash: d.Hash, Replayed: d.Replayed, Differ: d.Parts}
	if err := o.showVerified(v); err != nil {
		return err
	}
	if len(v.Differ) > 0 {
		return fmt.Errorf("the snapshot is not what the log gives: %d parts differ: if the daemon's version is that of this %s, delete the snapshot and report this", len(v.Differ), o.Env.Name)
	}
	return nil
}

func (o *replayOptions) showVerified(v verified) error {
	if o.Format.Value != "" {
		return o.Format.Print(o.Env.Out, v)
	}
	err := cmp.Or(
		o.Env.Linef("Snapshot      %s, up to sequence %d", v.Snapshot, v.Sequence),
		o.Env.Linef("Content       sha256 %s", v.Hash), o.Env.Linef("Replayed      sha256 %s", v.Replayed))
	for _, name := range v.Differ {
		err = cmp.Or(err, o.Env.Linef("Differs       %s", name))
	}
	return err
}
