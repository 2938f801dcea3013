package ui

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"scute.dev/test/assets"
)

// built are the paths of the programs and files that the tests use.
var built struct{ scutectl, examples, axe string } //nolint:gochecknoglobals // TestMain builds once for all tests

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if _, err := exec.LookPath("chromium"); err != nil {
		return 0, fmt.Errorf("the tests of the pages need Chromium (Debian: apt-get install chromium): %w", err)
	}
	root, err := assets.Root()
	if err != nil {
		return 0, err
	}
	bin, err := assets.Build(context.Background(), os.Stderr, assets.Ctl)
	if err != nil {
		return 0, err
	}
	built.scutectl, built.examples = filepath.Join(bin, "scutectl"), filepath.Join(root, "docs", "examples")
	axe, err := os.ReadFile(filepath.Join("testdata", "axe.min.js"))
	if err != nil {
		return 0, err
	}
	built.axe = string(axe)
	return m.Run(), nil
}

// place is a folder in which scutectl runs.
type place struct {
	t   *testing.T
	dir string
	// spoil changes the texts of saved histories. It may be nil.
	spoil func(string) string
}

func newPlace(t *testing.T) *place {
	t.Helper()
	return &place{t: t, dir: t.TempDir()}
}

// scutectl runs a command and returns its output. It ignores the exit status unless it reports wrong usage, because the
// status depends on the run.
func (p *place) scutectl(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), built.scutectl, args...)
	cmd.Dir = p.dir
	out, err := cmd.CombinedOutput()
	if err != nil && cmd.ProcessState.ExitCode() == 2 {
		p.t.Fatalf("scutectl %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// example runs examples of docs/examples.
func (p *place) example(names ...string) {
	p.t.Helper()
	for _, name := range names {
		p.scutectl("run", "-f", filepath.Join(built.examples, name+".yaml"), "--local")
	}
}

// serve starts scutectl ui and returns the address that it prints.
func (p *place) serve(args ...string) string {
	p.t.Helper()
	cmd := exec.CommandContext(p.t.Context(), built.scutectl, append([]string{"ui", "--local"}, args...)...)
	cmd.Dir = p.dir
	return serve(p.t, cmd)
}

func serve(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(os.Interrupt)
		_ = cmd.Wait()
	})
	var address string
	if _, err := fmt.Fscanln(out, &address); err != nil {
		t.Fatalf("scutectl ui printed no address: %v", err)
	}
	return address
}
