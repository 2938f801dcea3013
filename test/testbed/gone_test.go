package testbed_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"scute.dev/test/testbed"
)

// envEnding makes the test binary start a bed and exit in the named way, instead of running tests.
const envEnding = "TESTBED_ENDING"

func TestMain(m *testing.M) {
	if ending := os.Getenv(envEnding); ending != "" {
		end(ending)
		return
	}
	os.Exit(m.Run())
}

// end runs the child process of TestNothingIsLeft.
func end(ending string) {
	bed, err := testbed.Start(context.Background(), testbed.Options{Sides: []string{"only"}, Bare: true, Log: io.Discard})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(bed.Logs())
	switch ending {
	case "stop":
		if err := bed.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	case "exit":
		os.Exit(3)
	case "panic":
		panic("as the test wants")
	default:
		select {} // until the parent's signal
	}
}

// TestNothingIsLeft checks that no process and no folder of a bed remains, in whatever way its process exits. It does
// not check ports: the kernel frees them with the processes, and another bed may use them already.
func TestNothingIsLeft(t *testing.T) {
	binary, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for ending, signal := range map[string]syscall.Signal{
		"stop": 0, "exit": 0, "panic": 0, "interrupt": syscall.SIGINT, "terminate": syscall.SIGTERM, "kill": syscall.SIGKILL,
	} {
		t.Run(ending, func(t *testing.T) {
			child := exec.Command(binary)
			child.Env = append(os.Environ(), envEnding+"="+ending)
			stdout, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			defer func() { _ = child.Process.Kill() }() // it may have exited
			lines := bufio.NewScanner(stdout)
			if !lines.Scan() {
				t.Fatalf("the child exited before its bed ran: %v", child.Wait())
			}
			folder := lines.Text()
			if signal != 0 {
				if n := len(processesIn(t, folder)); n < 3 {
					t.Errorf("%d processes run in %s, want at least etcd, kube-apiserver and kube-controller-manager", n, folder)
				}
				if err := child.Process.Signal(signal); err != nil {
					t.Fatal(err)
				}
			}
			_ = child.Wait()
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			eventually(ctx, t, "everything to be gone", func() bool {
				_, err := os.Stat(folder)
				return os.IsNotExist(err) && len(processesIn(t, folder)) == 0
			})
		})
	}
}

// processesIn returns the command lines of the running processes that contain the folder.
func processesIn(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("needs /proc")
	}
	var found []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err == nil && strings.Contains(string(content), folder) {
			found = append(found, strings.ReplaceAll(string(content), "\x00", " "))
		}
	}
	return found
}
