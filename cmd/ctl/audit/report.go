package audit

import (
	"context"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

type reportOptions struct {
	*options
	kit.Filter
	// selected contains the flags that select events, as the user wrote them.
	selected []string
}

func newCmdReport(env *cli.Env) *cobra.Command {
	o := &reportOptions{options: newOptions(env)}
	cmd := &cobra.Command{
		Use:   "report",
		Short: "Report who decided what, when, about which machine, and on which facts, in Markdown or HTML",
		Long: `Report who decided what, when, about which machine, and on which facts. The report lists the decisions of people, then each move, run
and machine with its events. It states whether the log was verified against a checkpoint (--key and --checkpoint, or those of the
cluster), and if not, why.

Exit status: 0 the report is written; 1 it is written, and the log is violated or commits are missing; 2 it could not be created.`,
		Example: kit.Examples(env, "$ audit report --since 2026-07-01 --until 2026-08-01 > july.md",
			"$ audit report --cluster prod -o html --key scute.pub --checkpoint checkpoints --export log.jsonl > prod.html"),
	}
	o.options.addFlags(cmd)
	o.addCheckpoint(cmd)
	selection := o.Filter.AddFlags(cmd)
	o.format.AddFlag(cmd, formatMarkdown, formatHTML)
	return o.command(cmd, 0, "", func(ctx context.Context, _ []string) error {
		selection.VisitAll(func(f *pflag.Flag) {
			if f.Changed {
				o.selected = append(o.selected, "--"+f.Name+"="+f.Value.String())
			}
		})
		return o.run(ctx)
	})
}

func (o *reportOptions) run(ctx context.Context) error {
	if err := o.Check(o.Env); err != nil {
		return err
	}
	src, err := o.source(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = src.close() }()
	r := newReport(&o.Filter)
	r.Log, r.LogID, r.Made, r.Selected = src.where, src.logID, o.Env.Now(), strings.Join(o.selected, " ")
	if r.verification, err = o.check(ctx, src, r.addCommit); err != nil {
		return err
	}
	r.recordMissing(src.last + 1)
	if err := r.write(o.Env.Out, o.format.Value); err != nil {
		return err
	}
	if r.Violated || len(r.Missing) > 0 {
		return cli.SilentExit(exitViolated)
	}
	return nil
}

// check reads the source, and verifies it if there is a checkpoint.
func (o *reportOptions) check(ctx context.Context, src *source, take func(eventlog.Record) error) (v verification, err error) {
	p, why := o.published(ctx)
	if why != nil {
		err := src.each(ctx, take)
		return verification{Why: why.Error(), Findings: src.unreadable}, err
	}
	report, err := o.compare(ctx, p, src, take)
	if err != nil {
		return v, err
	}
	v = verification{Checked: true, Violated: !report.Intact(), Size: report.Size, Beyond: report.Beyond, Key: string(p.key), KeyFromCluster: !p.trusted}
	for _, f := range report.Findings {
		v.Findings = append(v.Findings, f.String())
	}
	v.Findings = append(v.Findings, report.Notes...)
	return v, nil
}
