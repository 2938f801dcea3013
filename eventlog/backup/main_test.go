package backup_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"go.uber.org/goleak"

	"scute.dev/eventlog/backup"
	"scute.dev/eventlog/embedded"
	"scute.dev/eventlog/logtest"
)

// childEnv is the variable that makes the test binary run as a child process; its value is the child's role.
const childEnv = "SCUTE_TEST_CHILD"

func TestMain(m *testing.M) {
	switch part := os.Getenv(childEnv); part {
	case "":
		goleak.VerifyTestMain(m, logtest.KnownLeaks()...)
	case "serve":
		serve(os.Args[1])
	case "backup", "restore":
		runPart(part, os.Args[1], os.Args[2], os.Args[3], os.Args[4])
	default:
		panic("unknown part " + part)
	}
}

// runPart backs up the log in folder from into to, or restores the backup in from to the folder or
// URL to, and blocks at a commit while it is copied or checked.
func runPart(part, from, to, phase, at string) {
	stopAt, err := strconv.ParseUint(at, 10, 64)
	if err == nil {
		tell := func(of string) func(seq, last uint64) {
			return func(seq, _ uint64) {
				if of == phase && seq == stopAt {
					fmt.Println("here")
					_, _ = io.Copy(io.Discard, os.Stdin)
				}
			}
		}
		ctx := context.Background()
		if part == "backup" {
			err = runBackup(ctx, from, to, backup.Options{Now: time.Now(), Copied: tell("copy"), Verified: tell("check")})
		} else {
			var m backup.Manifest
			if m, err = backup.Read(from); err == nil {
				err = restoreTo(ctx, to, backup.Source(from, m, tell("copy"), tell("check")), embedded.RestoreOptions{})
			}
		}
	}
	fmt.Fprintln(os.Stderr, "the child ended:", err)
	os.Exit(1)
}

func runBackup(ctx context.Context, from, to string, o backup.Options) error {
	l, err := embedded.Open(ctx, embedded.Options{Dir: from})
	if err != nil {
		return err
	}
	_, err = backup.Write(ctx, l, to, o)
	return err
}

// serve runs a NATS server in a folder until its input ends.
func serve(dir string) {
	srv, err := server.NewServer(&server.Options{
		JetStream: true, StoreDir: dir, NoSigs: true, NoLog: true, Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStreamMaxStore: 1 << 40,
	})
	if err != nil {
		panic(err)
	}
	srv.Start()
	if srv.ReadyForConnections(time.Minute) {
		fmt.Println(srv.ClientURL())
		_, _ = io.Copy(io.Discard, os.Stdin)
	}
	srv.Shutdown()
	srv.WaitForShutdown()
	os.Exit(0)
}

// startServerProcess starts a server in another process, and returns its URL.
func startServerProcess(t *testing.T) (url string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], t.TempDir())
	cmd.Env = append(os.Environ(), childEnv+"=serve")
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
	t.Cleanup(func() { _ = stdin.Close(); _ = cmd.Wait() })
	lines := bufio.NewScanner(stdout)
	if !lines.Scan() {
		t.Fatal("the server did not start")
	}
	return lines.Text()
}

// killAt starts a child, and kills it with SIGKILL when it is at a commit.
func killAt(t *testing.T, part, from, to, phase string, at uint64) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0], from, to, phase, strconv.FormatUint(at, 10))
	cmd.Env = append(os.Environ(), childEnv+"="+part)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	defer stdin.Close()
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	arrived := bufio.NewScanner(stdout).Scan()
	_ = cmd.Process.Signal(syscall.SIGKILL)
	_ = cmd.Wait()
	if !arrived {
		t.Fatalf("the child did not reach commit %d (%s)", at, phase)
	}
}
