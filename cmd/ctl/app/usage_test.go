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

// TestOptionsHaveValuesOfAType checks that no usage contains backquotes, because pflag shows a word in backquotes as
// the name of the value.
func TestOptionsHaveValuesOfAType(t *testing.T) {
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if strings.Contains(f.Usage, "`") {
				value, _ := pflag.UnquoteUsage(f)
				t.Errorf("%s --help names the value of --%s %q", cmd.CommandPath(), f.Name, value)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}

// TestEveryOptionIsDocumented checks that the documentation names each option of a command, in backquotes or in a line
// that a user types.
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
			return // cobra generates it
		}
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden && f.Name != "help" && !named["--"+f.Name] && !named["-"+f.Shorthand] {
				named["--"+f.Name] = true // report it once
				t.Errorf("no page of docs names --%s of %s", f.Name, cmd.CommandPath())
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
}

// TestOptionsOfFewValuesAreCompleted checks that shells complete the values of each option with a fixed set of values.
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
			case len(one) == 0 || cmd.CommandPath() == "scutectl decide run" && f.Name == "output": // this is a task's output
				return
			case !ok:
				t.Errorf("--%s of %s has no completion", f.Name, cmd.CommandPath())
				return
			}
			found[f.Name] = true
			values, directive := complete(cmd, nil, "")
			if directive&cobra.ShellCompDirectiveNoFileComp == 0 || !slices.ContainsFunc(one, func(v string) bool { return slices.Contains(values, v) }) {
				t.Errorf("completion of --%s of %s: got %q, directive %d", f.Name, cmd.CommandPath(), values, directive)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(newCmd(cli.System("scutectl", "test"), Options{}, new(bool)))
	for name := range offered {
		if !found[name] {
			t.Errorf("no command has the option --%s", name)
		}
	}
}

// TestBadValuesAreExplained checks that each option that does not accept every text reports which values it accepts.
func TestBadValuesAreExplained(t *testing.T) {
	root, values := newCmd(cli.System("scutectl", "test"), Options{}, new(bool)), 0
	var visit func(cmd *cobra.Command)
	visit = func(cmd *cobra.Command) {
		cmd.LocalFlags().VisitAll(func(f *pflag.Flag) {
			err := cmd.ParseFlags([]string{"--" + f.Name + "=xx\""})
			if err == nil {
				if kind := f.Value.Type(); kind != "string" {
					t.Errorf("--%s of %s, a %s, accepts an invalid value", f.Name, cmd.CommandPath(), kind)
				}
				return
			}
			values++
			err = cmd.FlagErrorFunc()(cmd, err)
			if said := err.Error(); !strings.HasPrefix(said, `invalid argument "xx\"" for "`) || !strings.Contains(said, "--"+f.Name+`" flag: `) {
				t.Errorf("%s: got error %s", cmd.CommandPath(), said)
			}
		})
		for _, sub := range cmd.Commands() {
			visit(sub)
		}
	}
	visit(root)
	if values < 100 {
		t.Errorf("tried %d options, want at least 100", values)
	}
}

// TestTheLoggerOfControllerRuntimeIsSet checks that the logger is set. Otherwise, controller-runtime prints a warning
// with a stack in every program that runs longer than 30 seconds.
func TestTheLoggerOfControllerRuntimeIsSet(t *testing.T) {
	env := cli.System("scutectl", "test")
	env.Out, env.Err = io.Discard, io.Discard
	if code := Run(t.Context(), env, []string{"version"}); code != 0 {
		t.Fatalf("scutectl version: exit code %d", code)
	}
	if _, waits := ctrllog.Log.WithName("x").GetSink().(interface{ Fulfill(logr.LogSink) }); waits {
		t.Error("the logger of controller-runtime is not set")
	}
}

// TestNoFileIsOfferedAsAnAggregate checks that shells do not complete --aggregate with the names of files.
func TestNoFileIsOfferedAsAnAggregate(t *testing.T) {
	root := newCmd(cli.System("scutectl", "test"), Options{}, new(bool))
	for _, path := range []string{"log tail", "log grep", "log export", "log replay", "audit report"} {
		cmd, _, err := root.Find(strings.Fields(path))
		if err != nil {
			t.Fatal(err)
		}
		complete, ok := cmd.GetFlagCompletionFunc("aggregate")
		if !ok {
			t.Errorf("--aggregate of %s is completed with files", path)
			continue
		}
		if values, directive := complete(cmd, nil, ""); len(values) > 0 || directive != cobra.ShellCompDirectiveNoFileComp {
			t.Errorf("completion of --aggregate of %s: got %q, directive %d", path, values, directive)
		}
	}
}
