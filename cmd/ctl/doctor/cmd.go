package doctor

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/view"
)

type options struct {
	*kit.Kit
	format cli.Format
}

// NewCmd returns `scutectl doctor`.
func NewCmd(env *cli.Env) *cobra.Command {
	o := &options{}
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check whether everything scute needs is in place",
		Long: `Check whether everything scute needs is in place: the connection to the cluster, Cluster API, scute, the log,
and leftovers of interrupted operations. Nothing is changed.

Exit status: 0 no problem (there may be warnings), 1 a problem.`,
		Example: kit.Examples(env, "$ doctor", "$ doctor -o 'jsonpath={.results[?(@.level==\"problem\")].message}'"),
		Args:    cli.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return o.run(cmd.Context()) },
	}
	o.Kit = kit.New(env, cmd, "resources that you work with")
	cmd.AddCommand(newCmdProvider(env))
	o.format.AddFlag(cmd, "json", "yaml", "jsonpath=...")
	return cmd
}

func (o *options) run(ctx context.Context) error {
	if err := o.Flags.Check(); err != nil {
		return err
	}
	counts := make(map[level]int)
	results := []result{}
	v := &diagnosis{kit: o.Kit, flags: o.Flags, now: o.Env.Now, report: func(r result) {
		counts[r.Level]++
		if results = append(results, r); !o.format.Data() {
			_ = o.Print(o.lines(r))
		}
	}}
	v.run(ctx)
	if ctx.Err() != nil {
		return cli.Interrupted(fmt.Errorf("interrupted: the remaining checks did not run"))
	}
	if o.format.Data() {
		if err := o.format.Print(o.Env.Out, map[string]any{"results": results}); err != nil {
			return err
		}
	}
	switch {
	case counts[levelProblem] > 0:
		o.Env.Notef("%s, %s.", view.Count(counts[levelProblem], "problem"), view.Count(counts[levelWarning], "warning"))
		return cli.SilentExit(cli.ExitFailed)
	case counts[levelWarning] > 0:
		o.Env.Notef("No problem, %s.", view.Count(counts[levelWarning], "warning"))
	default:
		o.Env.Notef("No problem found.")
	}
	return nil
}

const (
	levelColumns   = 8
	subjectColumns = 14
)

// lines returns a result as lines, with the remedy below it. For a pipe it returns a single line.
func (o *options) lines(r result) (out []string) {
	paint := cli.Paint{On: o.Env.Colored(o.Env.Out)}
	style := map[level]cli.Style{levelOK: cli.Green, levelWarning: cli.Yellow, levelProblem: cli.Red}[r.Level]
	head := fmt.Sprintf("%s %-*s ", paint.Text(style, fmt.Sprintf("%-*s", levelColumns, r.Level)), subjectColumns, r.Subject)
	width, _, _ := o.Env.Size(o.Env.Out)
	if width == 0 {
		line := head + cli.Clean(r.Message)
		if r.Remedy != "" {
			line += "; remedy: " + cli.Clean(r.Remedy)
		}
		return []string{line}
	}
	indent := levelColumns + subjectColumns + 2
	for i, line := range cli.Wrap(cli.Clean(r.Message), max(20, width-indent)) {
		if i > 0 {
			head = strings.Repeat(" ", indent)
		}
		out = append(out, head+line)
	}
	if r.Remedy == "" {
		return out
	}
	for i, line := range cli.Wrap(cli.Clean(r.Remedy), max(20, width-indent-2)) {
		mark := "  "
		if i == 0 {
			mark = "→ "
		}
		out = append(out, strings.Repeat(" ", indent)+paint.Text(style, mark+line))
	}
	return out
}
