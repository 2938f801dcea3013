package audit

import (
	"cmp"
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
	"scute.dev/eventlog/seal"
)

func newCmdVerify(env *cli.Env) *cobra.Command {
	o := newOptions(env)
	cmd := &cobra.Command{
		Use:   "verify",
		Short: "Verify that the log contains exactly what was sealed",
		Long: `Verify that the log contains exactly what was sealed: no commit up to the checkpoint was changed, removed, added or moved.

Without flags, it verifies the log of the cluster against the checkpoint in the cluster. An auditor passes the public key and a
checkpoint that was kept elsewhere. With the leaf hashes (--hashes) it reports which commits differ; without them, only between
which checkpoints they are.

Exit status: 0 intact, 1 violated, 2 it could not be checked.`,
		Example: kit.Examples(env, "$ audit verify", "$ audit verify --key scute.pub --checkpoint checkpoints --export log.jsonl",
			"$ audit verify --key scute.pub --checkpoint checkpoints --log /var/lib/scute"),
	}
	o.addFlags(cmd)
	o.addCheckpoint(cmd)
	o.format.AddFlag(cmd, "json")
	return o.command(cmd, 0, "", func(ctx context.Context, _ []string) error { return o.verify(ctx) })
}

type verdict struct {
	Log string `json:"log"`
	// Intact is true if the log contains exactly the sealed commits.
	Intact bool `json:"intact"`
	seal.Report
	Key seal.PublicKey `json:"key"`
}

func (o *options) verify(ctx context.Context) error {
	p, err := o.published(ctx)
	if err != nil {
		return err
	}
	src, err := o.source(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = src.close() }()
	report, err := o.compare(ctx, p, src, nil)
	if err != nil {
		return err
	}
	return o.printVerdict(verdict{Log: src.where, Intact: report.Intact(), Report: report, Key: p.key}, p)
}

// compare verifies a source against the checkpoints. If also is not nil, each commit is passed to
// it, too.
func (o *options) compare(ctx context.Context, p *published, src *source, also func(eventlog.Record) error) (seal.Report, error) {
	tree, err := o.tree()
	if err != nil {
		return seal.Report{}, err
	}
	if tree != nil {
		defer tree.Close()
	}
	verifier, progress := seal.NewVerifier(p.newest, p.earlier, tree), o.Env.Progress()
	err = src.each(ctx, func(m eventlog.Record) error {
		progress.Showf("verifying: %d of %d commits", m.Seq, p.newest.Size)
		if also != nil {
			if err := also(m); err != nil {
				return err
			}
		}
		return verifier.Add(m)
	})
	progress.Done()
	if err != nil {
		return seal.Report{}, err
	}
	report, err := verifier.Report()
	if err != nil {
		return report, err
	}
	if src.logID != p.newest.LogID {
		report.Findings = append([]seal.Finding{{
			Kind: seal.Replaced, Run: seal.Run{First: 1, Last: p.newest.Size}, Detail: fmt.Sprintf("this is log %q, the checkpoint is of log %s", src.logID, p.newest.LogID),
		}}, report.Findings...)
	}
	report.Notes = append(report.Notes, src.unreadable...)
	return report, nil
}

func (o *options) printVerdict(v verdict, p *published) error {
	if !p.trusted {
		o.Env.Notef("The public key was read from the cluster. Anybody who changed the log there may have changed the key too: keep it elsewhere, and pass --key.")
	}
	if o.format.Value != "" {
		if err := o.format.Print(o.Env.Out, v); err != nil {
			return err
		}
	} else if err := o.text(v); err != nil {
		return err
	}
	if !v.Intact {
		return cli.SilentExit(exitViolated)
	}
	return nil
}

func (o *options) text(v verdict) error {
	word := "intact"
	if !v.Intact {
		word = "VIOLATED"
	}
	covered := fmt.Sprintf("commits 1 to %d", v.Size)
	if v.Size == 0 { // the first checkpoint of a log was signed before any commit
		covered = "no commit was verified because the checkpoint covers none; use a later checkpoint"
	}
	err := o.Env.Linef("%s: log %s at %s, %s", word, v.LogID, v.Log, covered)
	for _, f := range v.Findings {
		err = cmp.Or(err, o.Env.Linef("  %s", f))
	}
	if v.Beyond > 0 {
		err = cmp.Or(err, o.Env.Linef("  %d commits are after the checkpoint and not covered by it", v.Beyond))
	}
	for _, n := range v.Notes {
		err = cmp.Or(err, o.Env.Linef("  note: %s", n))
	}
	return err
}
