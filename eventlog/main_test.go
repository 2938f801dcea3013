package eventlog_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// childEnv is the variable that makes the test binary run as a child process; its value is the child's role.
const childEnv = "SCUTE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch part := os.Getenv(childEnv); part {
	case "":
		goleak.VerifyTestMain(m, logtest.KnownLeaks()...)
	case "append":
		runAppender()
	case "serve":
		runServer()
	default:
		panic("unknown part " + part)
	}
}

// child is another process of this test binary.
type child struct {
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines *bufio.Scanner
}

func startChild(t *testing.T, part string, args ...string) *child {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), childEnv+"="+part)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	c := &child{cmd, stdin, bufio.NewScanner(stdout)}
	t.Cleanup(c.kill)
	return c
}

// kill sends SIGKILL and waits until the process has ended. Its earlier output can still be read.
func (c *child) kill() {
	_ = c.cmd.Process.Signal(syscall.SIGKILL)
	_ = c.cmd.Process.Signal(syscall.SIGCONT)
	_ = c.cmd.Wait()
}

// runServer serves an embedded log in folder os.Args[1] on address os.Args[2] and prints its URL.
func runServer() {
	l, err := embedded.Open(context.Background(), embedded.Options{Dir: os.Args[1], Listen: os.Args[2]})
	if err != nil {
		fmt.Fprintln(os.Stderr, "serving child:", err)
		os.Exit(1)
	}
	fmt.Println(l.URL())
	_, _ = io.Copy(io.Discard, os.Stdin)
	os.Exit(0)
}

// serveChild starts runServer and returns its URL.
func serveChild(t *testing.T, dir, address string) (*child, string) {
	t.Helper()
	c := startChild(t, "serve", dir, address)
	if !c.lines.Scan() {
		t.Fatal("the serving child printed no URL")
	}
	return c, c.lines.Text()
}

func connectTest(t *testing.T, o eventlog.ExternalOptions) *eventlog.Log {
	t.Helper()
	l, err := eventlog.Connect(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// wantErr checks the kind of an error, and that its message contains the strings.
func wantErr(t *testing.T, err, kind error, says ...string) {
	t.Helper()
	if !errors.Is(err, kind) {
		t.Fatalf("got %v, want %v", err, kind)
	}
	for _, s := range says {
		if !strings.Contains(err.Error(), s) {
			t.Errorf("error %q does not contain %q", err, s)
		}
	}
}

// withTimeout returns a context that ends a test that hangs.
func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// retryUnavailable retries while the log is unavailable, which happens on a busy machine.
func retryUnavailable(ctx context.Context, try func() error) error {
	for {
		if err := try(); !errors.Is(err, eventlog.ErrUnavailable) || ctx.Err() != nil {
			return err
		}
	}
}

// replayAll replays the log after a sequence, checks that no sequence is missing, and returns a line for each commit.
func replayAll(t *testing.T, l *eventlog.Log, after uint64) (out []string) {
	t.Helper()
	if _, err := l.Replay(t.Context(), after, func(r eventlog.Record) error {
		if want := after + uint64(len(out)) + 1; r.Seq != want {
			t.Errorf("commit %d was delivered at position %d", r.Seq, want)
		}
		out = append(out, fmt.Sprintf("%d %s %s", r.Seq, r.Aggregate, r.CommitID))
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	return out
}
