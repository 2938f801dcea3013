package remediation

import (
	"context"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
	"scute.dev/eventlog"
)

// MachineCommands returns the commands about machines, by verb.
func MachineCommands(env *cli.Env) kit.Verbs {
	verbs := make(kit.Verbs)
	for verb, newCmd := range map[string]func(*cli.Env, *kit.Noun[*machine]) *cobra.Command{
		"get": kit.Get[*machine], "describe": kit.Describe[*machine], "watch": kit.Watch[*machine],
	} {
		s := &machineSource{}
		cmd := newCmd(env, newMachineNoun(s))
		cmd.Short = map[string]string{
			"get":      "Show machines: health, marks, decisions, and what happens next",
			"describe": "Show a machine with its owner, and the decision about it",
			"watch":    "Follow machines until interrupted, or one until it is deleted",
		}[verb]
		cmd.Long = cmd.Short + ".\n\n" + machineLong
		cmd.Example = kit.Examples(env, "$ "+verb+" machine prod-control-plane-x7k2p -n fleet")
		if verb != "describe" {
			cmd.Example += "\n" + kit.Examples(env, "$ "+verb+" machines -A", "$ "+verb+" machines -n fleet --cluster prod")
		}
		f := cmd.Flags()
		for _, name := range []string{"at", "timeline"} { // machines are not in the log
			if f.Lookup(name) != nil {
				_ = f.MarkHidden(name)
			}
		}
		if verb == "watch" {
			_ = f.MarkHidden("output")
		}
		f.BoolVar(&s.live, "live", false, "Show only the objects, and do not read the event log")
		if verb != "describe" {
			f.StringVar(&s.cluster, "cluster", "", "Show this cluster only")
			f.BoolVar(&s.all, "all", false, "List all workers")
		}
		if validate := cmd.PreRunE; validate != nil {
			cmd.PreRunE = func(cmd *cobra.Command, args []string) error {
				output, _ := cmd.Flags().GetString("output")
				if watch, _ := cmd.Flags().GetBool("watch"); (watch || verb == "watch") && output != "" && output != "wide" {
					return cli.Usagef("--watch shows text: leave -o %s out", output)
				}
				return validate(cmd, args)
			}
		}
		complete := cmd.ValidArgsFunction
		cmd.ValidArgsFunction = func(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
			s.live = true // reading the log would take too long
			return complete(cmd, args, typed)
		}
		verbs[verb] = cmd
	}
	return verbs
}

const machineLong = `The command reads the objects of Cluster API and scute, and the event log for the rules and times of decisions. If the log cannot
be reached, it prints a note and shows only the objects. It needs neither a RepairPolicy nor scute's kinds.

Running workers without a mark are counted, and listed only with --all.`

func newMachineNoun(s *machineSource) *kit.Noun[*machine] {
	n := &kit.Noun[*machine]{
		Name: "machine", Plural: "machines", Short: []string{"ma"}, WithArticle: "a machine", Resource: "machine.cluster.x-k8s.io",
		Key:   func(m *machine) types.NamespacedName { return kit.Key(m.Namespace, m.Name) },
		Phase: func(m *machine) string { return m.Health },
		Log:   func(*machine) (eventlog.Aggregate, bool) { return eventlog.Aggregate{}, false }, // its remediation has a log
		Header: kit.Row{
			Cells: []string{"CLUSTER", "MACHINE", "HEALTH", "MARKS", "DECISION", "NEXT"}, Wide: []string{"WHY", "DO", "OWNER"}, Wrap: 2,
		},
		Row: machineRow,
		Omitted: func(m *machine) string {
			if s.all || m.named || m.controlPlane || m.Health != running || len(m.Marks) > 0 || m.Remediation != nil {
				return ""
			}
			return "running worker"
		},
		Data: func(list []*machine, _ bool) any {
			return map[string]any{"machines": append([]*machine{}, list...), "log": s.log}
		},
		Describe: func(_ context.Context, p *kit.Session[*machine], m *machine) ([]string, error) {
			return describeMachine(p.View(), m), nil
		},
		StatusLines: describeMachine,
		Updates:     func(m *machine) []kit.Update { return []kit.Update{{Text: m.fact()}} },
		IsFinished:  func(*machine) bool { return false },
		HasFailed:   func(*machine) bool { return false },
		AfterWatch:  "operations in progress continue",
	}
	n.Open = func(k *kit.Kit) (*kit.Session[*machine], error) {
		switch {
		case k.Flags.Local:
			return nil, cli.Usagef("machines are in a management cluster, and a log of local runs has none: leave out --local; --log and --nats name the log of a daemon")
		case s.live && k.Flags.LogOnly():
			return nil, cli.Usagef("--live reads no log: leave --log and --nats out")
		case k.At.IsSet():
			return nil, cli.Usagef("machines are objects of the management cluster, which keeps no earlier state: leave out --at")
		}
		if s.cluster != "" {
			if err := kit.CheckName("--cluster", s.cluster); err != nil {
				return nil, err
			}
		}
		cluster, err := k.Flags.Cluster()
		if err != nil {
			return nil, err
		}
		s.session = &kit.Session[*machine]{Kit: k, Source: s, Noun: n, Cluster: cluster}
		return s.session, nil
	}
	return n
}
