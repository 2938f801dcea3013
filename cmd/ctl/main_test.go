package main

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"scute.dev/cmd/ctl/app"
	"scute.dev/cmd/ctl/cli"
)

// nowVariable names the variable with the time at which scripts run scutectl, which makes their output comparable.
const nowVariable = "NOW"

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"scutectl":      func() { os.Exit(runAt("scutectl")) },
		"kubectl-scute": func() { os.Exit(runAt("kubectl-scute")) },
		"seedlog":       func() { exit(seed(context.Background(), os.Args[1:])) },
		"seallog":       func() { exit(sealLog(context.Background(), os.Args[1:])) },
		"alter":         func() { exit(forge(os.Args[1:])) },
		"servelog":      func() { exit(serve(os.Args[1:])) },
	})
}

func runAt(program string) int {
	env := cli.System(app.Name(program), "v0.0.0-test")
	if at := os.Getenv(nowVariable); at != "" {
		now, err := time.Parse(time.RFC3339, at)
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 3
		}
		env.Now = func() time.Time { return now }
	}
	return app.Run(context.Background(), env, os.Args[1:])
}

func exit(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// TestScripts runs testdata/*.txtar. Update the expected output with UPDATE=1.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 "testdata",
		UpdateScripts:       os.Getenv("UPDATE") != "",
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(env *testscript.Env) error {
			env.Setenv(nowVariable, "2026-07-30T12:05:00Z")
			env.Setenv("KUBECONFIG", env.WorkDir+"/no-kubeconfig")
			env.Setenv("XDG_CONFIG_HOME", env.WorkDir+"/config")
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			// exits CODE PROGRAM ARGS... runs a program and checks its exit code.
			"exits": func(ts *testscript.TestScript, _ bool, args []string) {
				if len(args) < 2 {
					ts.Fatalf("usage: exits CODE PROGRAM [ARG ...]")
				}
				err := ts.Exec(args[1], args[2:]...)
				if got := exitCode(err); fmt.Sprint(got) != args[0] {
					ts.Fatalf("exit code %d, want %s (%v)", got, args[0], err)
				}
			},
		},
	})
}

func exitCode(err error) int {
	if err == nil {
		return 0
	}
	if e, ok := err.(interface{ ExitCode() int }); ok {
		return e.ExitCode()
	}
	return -1
}
