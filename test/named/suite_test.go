package lifecycle

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"scute.dev/test/assets"
	"scute.dev/test/harness"
	"scute.dev/test/process"
	"scute.dev/test/testbed"
)

// suite has what the tests share. They run one after the other and are independent of each other.
type suite struct {
	bed         *testbed.Bed
	blue, green *testbed.Side
	driver, ctl string
}

// shared is set once by TestMain.
var shared *suite //nolint:gochecknoglobals // a test main has no other way to hand on what it made

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	return harness.Run(m, "named", testbed.Options{}, func(ctx context.Context, bed *testbed.Bed) error {
		bin, err := assets.Build(ctx, os.Stderr, assets.Ctl, assets.Driver)
		shared = &suite{
			bed: bed, blue: bed.Side("blue"), green: bed.Side("green"),
			driver: filepath.Join(bin, "driver"), ctl: filepath.Join(bin, "scutectl"),
		}
		return err
	})
}

// session is one run with the folder of its log, across any number of processes.
type session struct {
	t        *testing.T
	dir      string // of the log and of the run's other files
	manifest string
	started  int
	program  string
	args     []string
}

// newSession writes the manifest of a run of a named workflow, with further lines of its spec. The run's own cluster is
// blue.
func newSession(t *testing.T, workflow, params string, spec ...string) *session {
	t.Helper()
	dir := t.TempDir()
	s := &session{t: t, dir: dir, manifest: filepath.Join(dir, "workflow.yaml"), program: shared.driver}
	s.args = []string{"-f", s.manifest, "-log", s.log(), "-kubeconfig", shared.blue.KubeconfigPath()}
	text := fmt.Sprintf(`apiVersion: scute.dev/v1alpha1
kind: WorkflowRun
metadata: {name: %s, namespace: runs}
spec:
%s
  workflow:
    name: %s
    params:
%s`, workflow, strings.Join(spec, "\n"), workflow, indent(params))
	harness.Must(t, os.WriteFile(s.manifest, []byte(text), 0o600))
	return s
}

// hook adds hooks of the named workflow to the manifest.
func (s *session) hook(text string) {
	s.t.Helper()
	data, err := os.ReadFile(s.manifest)
	harness.Must(s.t, err)
	data = bytes.Replace(data, []byte("    params:\n"), []byte("    hooks:"+text+"    params:\n"), 1)
	harness.Must(s.t, os.WriteFile(s.manifest, data, 0o600))
}

func (s *session) log() string { return filepath.Join(s.dir, "log") }

// start starts a process that begins or resumes the run.
func (s *session) start() *process.Process {
	s.t.Helper()
	s.started++
	p, err := process.Start(process.Spec{Path: s.program, Args: s.args, Log: s.output()})
	harness.Must(s.t, err)
	s.t.Cleanup(func() { _ = p.Kill(context.Background()) })
	return p
}

func (s *session) output() string { return filepath.Join(s.dir, fmt.Sprintf("output-%d", s.started)) }

// run runs a process until it exits.
func (s *session) run(ctx context.Context, want int) {
	s.t.Helper()
	s.end(ctx, s.start(), want)
}

func (s *session) end(ctx context.Context, p *process.Process, want int) {
	s.t.Helper()
	select {
	case <-p.Done():
	case <-ctx.Done():
		_ = p.Kill(context.Background())
		s.t.Fatalf("the run does not end: %v\n%s", ctx.Err(), s.said())
	}
	if got := p.ExitCode(); got != want {
		s.t.Fatalf("the process ended with %d, want %d\n%s", got, want, s.said())
	}
	s.t.Logf("process %d: %s", s.started, s.said())
}

// killWhen kills the process when so returns true. The run must not have ended before.
func (s *session) killWhen(ctx context.Context, what string, so func(context.Context) bool) {
	s.t.Helper()
	p := s.start()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for !so(ctx) {
		select {
		case <-tick.C:
		case <-p.Done():
			s.t.Fatalf("the process ended before %s\n%s", what, s.said())
		case <-ctx.Done():
			s.t.Fatalf("waiting until %s: %v\n%s", what, ctx.Err(), s.said())
		}
	}
	harness.Must(s.t, p.Kill(ctx))
	s.t.Logf("process %d killed when %s", s.started, what)
}

// says waits until the current process has printed a text.
func (s *session) says(ctx context.Context, text string) {
	s.t.Helper()
	harness.Await(ctx, s.t, "the run says "+text, func() string {
		if said := s.said(); !strings.Contains(said, text) {
			return said
		}
		return ""
	})
}

// said returns the end of the latest process's output.
func (s *session) said() string {
	data, err := os.ReadFile(s.output())
	if err != nil {
		return err.Error()
	}
	return string(data[max(0, len(data)-3000):])
}

// json returns the report at the end of the latest process's output.
func (s *session) json() string {
	data, err := os.ReadFile(s.output())
	harness.Must(s.t, err)
	if i := bytes.Index(data, []byte("\n{")); i >= 0 {
		return string(data[i:])
	}
	return string(data)
}

func indent(text string) string {
	var out []byte
	for i, line := 0, true; i < len(text); i++ {
		if line {
			out = append(out, "      "...)
		}
		out = append(out, text[i])
		line = text[i] == '\n'
	}
	return string(out)
}
