package app

import (
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr"
	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	ctrllog "sigs.k8s.io/controller-runtime/pkg/log"

	"scute.dev/cmd/ctl/cli"
)

// A word in backquotes in the usage of an option is shown as the name of its value.
func TestOptionsHaveValuesOfAType(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				value, _ := pflag.UnquoteUsage(f)
				t.Errorf("%s --help calls the value of --%s %q", cmd.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}

// TestEveryOptionIsDocumented: each option of a command is named in the documentation, in backquotes or in a line that a user types.
func TestEveryOptionIsDocumented(t *testing.T) {
	var text strings.Builder
	err := filepath.WalkDir("../../../docs", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".md" {
			return err
		}
		page, err := os.ReadFile(path)
		text.Write(page)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	named := make(map[string]bool)
	for _, option := range regexp.MustCompile(`--[a-z][a-z-]*|[ `+"`"+`]-[a-zA-Z]\b`).FindAllString(text.String(), -1) {
		named[strings.Trim(option, " `")] = true
	}
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		if cmd.Name() == "completion" {
			return // it is cobra's
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && !named["--"+f.Name] && !named["-"+f.Shorthand] {
				named["--"+f.Name] = true // once
				t.Errorf("no page of docs names --%s, of %s and maybe others", f.Name, cmd.CommandPath())
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}

// TestOptionsOfFewValuesAreCompleted: a shell offers the values of each option that has a closed set of them.
func TestOptionsOfFewValuesAreCompleted(t *testing.T) {
	offered := map[string]string{
		"action": "abort forward", "default-failure-policy": "IgnoreChildren", "kind": "remediation", "output": "json html csv",
		"type": "dev.scute.move.requested.v1",
	}
	found := make(map[string]bool)
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			one := strings.Fields(offered[f.Name])
			complete, ok := cmd.GetFlagCompletionFunc(f.Name)
			switch {
			case len(one) == 0 || cmd.CommandPath() == "scutectl decide run" && f.Name == "output": // that is a task's
				return
			case !ok:
				t.Errorf("no shell completes --%s of %s", f.Name, cmd.CommandPath())
				return
			}
			found[f.Name] = true
			values, directive := complete(cmd, nil, "")
			if directive&cobra.ShellCompDirectiveNoFileComp == 0 || !slices.ContainsFunc(one, func(v string) bool { return slices.Contains(values, v) }) {
				t.Errorf("of --%s of %s a shell offers %q, directive %d", f.Name, cmd.CommandPath(), values, directive)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
	for name := range offered {
		if !found[name] {
			t.Errorf("no command has --%s", name)
		}
	}
}

// TestBadValuesAreExplained: each option of each command that does not take any text says in words what it takes.
func TestBadValuesAreExplained(t *testing.T) {
	root, values := newCmd(cli.System("scutectl", "test"), Options{}, new(bool)), 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			err := cmd.ParseFlags([]string{"--" + f.Name + "=xx\""})
			if err == nil {
				if kind := f.Value.Type(); kind != "string" {
					t.Errorf("--%s of %s, a %s, takes anything", f.Name, cmd.CommandPath(), kind)
				}
				return
			}
			values++
			err = cmd.FlagErrorFunc()(cmd, err)
			if said := err.Error(); !strings.HasPrefix(said, "--"+f.Name+` is "xx\"": it must be `) {
				t.Errorf("%s: %s", cmd.CommandPath(), said)
			}
			if code, _ := cli.Code(err); code != cli.ExitUsage {
				t.Errorf("%s: %v: exit code %d", cmd.CommandPath(), err, code)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	if values < 100 {
		t.Errorf("only %d options were tried", values)
	}
}

// controller-runtime complains, with a stack, in every program that runs longer than 30 seconds without having set its logger.
func TestTheLoggerOfControllerRuntimeIsSet(t *testing.T) {
	if code := Run(t.Context(), &cli.Env{Name: "scutectl", Out: io.Discard, Err: io.Discard}, []string{"version"}); code != 0 {
		t.Fatalf("scutectl version ended with %d", code)
	}
	if _, waits := ctrllog.Log.WithName("x").GetSink().(interface{ Fulfill(logr.LogSink) }); waits {
		t.Error("controller-runtime has no logger: it writes a warning to the standard error of what takes long")
	}
}
