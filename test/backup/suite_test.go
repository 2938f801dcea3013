package backup

import (
	"bytes"
	"context"
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"

	"scute.dev/test/harness"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// suite has what the tests of this package share.
type suite struct {
	bed      *testbed.Bed
	programs scuted.Programs
	ctl      string
	blue     *testbed.Side // stopped at the end
	to       *testbed.Side
}

// shared is set once by TestMain.
var shared = new(suite) //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) {
	os.Exit(harness.Run(m, "backup", testbed.Options{Sides: []string{"blue", "green", "third"}}, func(ctx context.Context, bed *testbed.Bed) error {
		programs, err := scuted.Build(ctx, os.Stderr)
		shared.bed, shared.programs, shared.ctl, shared.blue, shared.to = bed, programs, programs.Ctl, bed.Side("blue"), bed.Side("green")
		return err
	}))
}

// command returns a scutectl command with a kubeconfig.
func command(ctx context.Context, kubeconfig string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, shared.ctl, args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
	return cmd
}

// run runs scutectl on a side and checks its exit status and parts of its output, on either stream.
func run(ctx context.Context, t *testing.T, on *testbed.Side, code int, parts []string, args ...string) (stdout string) {
	t.Helper()
	cmd := command(ctx, on.KubeconfigPath(), args...)
	var out, complaints bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &complaints
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	said := out.String() + complaints.String()
	if got := cmd.ProcessState.ExitCode(); got != code {
		t.Fatalf("scutectl %s: exit status %d, want %d\n%s", strings.Join(args, " "), got, code, said)
	}
	for _, part := range parts {
		if !strings.Contains(said, part) {
			t.Errorf("scutectl %s: output lacks %q:\n%s", strings.Join(args, " "), part, said)
		}
	}
	return out.String()
}
