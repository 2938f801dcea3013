package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"scute.dev/workflow/task"
)

// TestMain also runs the victim of TestExecDies: a process that runs a command and is killed.
func TestMain(m *testing.M) {
	if pid := os.Getenv("TASK_TEST_VICTIM"); pid != "" {
		c := &task.Call{Run: "r", Task: "t", With: json.RawMessage(fmt.Sprintf(`{"command": ["sh", "-c", "echo $$ > %s; exec sleep 60"]}`, pid))}
		_, err := (&Kind{Enabled: true}).Run(context.Background(), c)
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

func command(script string) json.RawMessage {
	data, err := json.Marshal(map[string]any{"command": []string{"sh", "-c", script}, "env": map[string]string{"OWN": "mine"}})
	if err != nil {
		panic(err)
	}
	return data
}

func TestExec(t *testing.T) {
	c := &task.Call{
		Run: "fleet/a/1", Task: "part/of", Step: "before/x", Attempt: 2, Dir: filepath.Join(t.TempDir(), "run"),
		Inputs:  map[string]json.RawMessage{"first": json.RawMessage(`{"ip":"10.0.0.1"}`)},
		Failure: &task.Failure{Task: "broken", Cause: "error", Message: "no"},
		With:    command(`echo hello; printf '["%s","%s","%s","%s","%s",%s,%s]' $SCUTE_RUN $SCUTE_TASK $SCUTE_ATTEMPT $SCUTE_KEY $OWN "$(cat $SCUTE_INPUTS)" "$(cat $SCUTE_FAILURE)" > $SCUTE_OUTPUT`),
	}
	output, err := (&Kind{Enabled: true}).Run(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	want := `["fleet/a/1","part/of","2","fleet/a/1/part/of@before/x","mine",{"first":{"ip":"10.0.0.1"}},{"task":"broken","cause":"error","message":"no"}]`
	if string(output) != want {
		t.Errorf("output %s\nwant   %s", output, want)
	}
	said, err := os.ReadFile(filepath.Join(c.Dir, "part+of@before+x-2.log"))
	if err != nil || string(said) != "hello\n" {
		t.Errorf("log = %q, error %v", said, err)
	}
}

func TestExecFails(t *testing.T) {
	key := "-----BEGIN PRIVATE KEY-----\n" + strings.Repeat(strings.Repeat("A1b2", 16)+"\n", 3) + "-----END PRIVATE KEY-----"
	for name, c := range map[string]struct {
		with  json.RawMessage
		says  string
		final bool
	}{
		"exit status":       {command("echo one; echo two >&2; exit 3"), "sh: exit status 3: one\ntwo", false},
		"the last lines":    {command("seq 1 100000; exit 1"), "99999\n100000", false},
		"a key":             {command("echo '" + key + "'; echo after; exit 1"), "(removed)\nafter", false},
		"the rest of one":   {command("echo '" + strings.TrimPrefix(key, "-----BEGIN PRIVATE KEY-----\n") + "'; echo after; exit 1"), "(removed)\nafter", false},
		"no such program":   {json.RawMessage(`{"command": ["no-such-program"]}`), "cannot be started", true},
		"not JSON":          {command("echo hello > $SCUTE_OUTPUT"), "invalid JSON", true},
		"too large":         {command("seq 1 20000 > $SCUTE_OUTPUT"), "65536 are allowed", true},
		"unknown field":     {json.RawMessage(`{"command": ["true"], "shell": true}`), `with.shell: unknown field "shell"`, true},
		"no command":        {json.RawMessage(`{"command": []}`), "with.command: it is empty", true},
		"a name of scute's": {json.RawMessage(`{"command": ["true"], "env": {"SCUTE_RUN": "x"}}`), "with.env.SCUTE_RUN", true},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := (&Kind{Enabled: true}).Run(t.Context(), &task.Call{With: c.with})
			if err == nil || !strings.Contains(err.Error(), c.says) || task.IsFinal(err) != c.final {
				t.Errorf("final %t: %v\nwant %q", task.IsFinal(err), err, c.says)
			}
			if err != nil && (strings.Contains(err.Error(), "A1b2") || len(err.Error()) > 1200) {
				t.Errorf("error has %d bytes, or contains the key: %v", len(err.Error()), err)
			}
		})
	}
	problems := (&Kind{}).Validate(command("true"))
	if len(problems) != 1 || problems[0].Remedy != "run it locally, or start the daemon with --enable-exec" {
		t.Errorf("problems = %v", problems)
	}
}

// TestExecStops checks that the end of the context ends the command and its children: with SIGTERM first, and then with
// SIGKILL.
func TestExecStops(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		min    time.Duration
	}{
		"gently":  {"trap 'echo cleaned up; exit 1' TERM; sleep 3600 & echo $! > $PIDS; wait", 0},
		"harshly": {"trap '' TERM; sleep 3600 & echo $! > $PIDS; while :; do sleep 1; done", 9 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pids := filepath.Join(t.TempDir(), "pids")
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				waitForFile(t, pids)
				cancel()
			}()
			started := time.Now()
			_, err := (&Kind{Enabled: true}).Run(ctx, &task.Call{With: command("PIDS=" + pids + "; " + c.script)})
			if took := time.Since(started); took < c.min {
				t.Errorf("it ended after %s", took)
			}
			if !errors.Is(err, context.Canceled) || task.IsFinal(err) || name == "gently" && !strings.Contains(err.Error(), "cleaned up") {
				t.Errorf("Run = %v, want context.Canceled", err)
			}
			waitForDeath(t, waitForFile(t, pids))
		})
	}
}

// TestExecLeaves checks that the task does not wait for a process that its command leaves behind.
func TestExecLeaves(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	if _, err := (&Kind{Enabled: true}).Run(t.Context(), &task.Call{With: command("sleep 3600 & echo $! > " + pids)}); err != nil {
		t.Error(err)
	}
	if err := syscall.Kill(waitForFile(t, pids), syscall.SIGKILL); err != nil {
		t.Errorf("the process did not survive: %v", err)
	}
}

// TestExecDies checks that a command does not outlive the process that runs it.
func TestExecDies(t *testing.T) {
	pids := filepath.Join(t.TempDir(), "pids")
	victim := exec.Command(os.Args[0])
	victim.Env = append(os.Environ(), "TASK_TEST_VICTIM="+pids)
	if err := victim.Start(); err != nil {
		t.Fatal(err)
	}
	pid := waitForFile(t, pids)
	if err := victim.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = victim.Wait()
	waitForDeath(t, pid)
}

// waitForFile waits until a command has written a process ID, and returns it.
func waitForFile(t *testing.T, path string) int {
	t.Helper()
	for t.Context().Err() == nil {
		data, _ := os.ReadFile(path)
		if pid, err := strconv.Atoi(strings.TrimSpace(string(data))); err == nil {
			return pid
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Error("no process id in " + path)
	return 0
}

func waitForDeath(t *testing.T, pid int) {
	t.Helper()
	for t.Context().Err() == nil {
		state, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Errorf("process %d is alive", pid)
}

// TestExecRecordsBeforeItFails checks that the output of a failed command is recorded, and that a rollback keeps what
// the command did.
func TestExecRecordsBeforeItFails(t *testing.T) {
	output, err := (&Kind{Enabled: true}).Run(t.Context(), &task.Call{Run: "r", Task: "t", With: command(`echo '{"id": 7}' > $SCUTE_OUTPUT; exit 3`)})
	if err == nil || strings.TrimSpace(string(output)) != `{"id": 7}` {
		t.Errorf("output %s, error %v", output, err)
	}
	var kept *task.KeptError
	if err := (&Kind{Enabled: true}).Undo(t.Context(), &task.Call{}); !errors.As(err, &kept) {
		t.Errorf("Undo = %v, want a KeptError", err)
	}
}

// TestExecWarnsOfScripts checks that a reference to an output inside a shell script is a warning, because the shell
// executes it.
func TestExecWarnsOfScripts(t *testing.T) {
	for with, field := range map[string]string{
		`{"command": ["sh", "-c", "echo ${tasks.a.output}"]}`:                               "command[2]",
		`{"command": ["/bin/bash", "-euc", "echo ${tasks.a.output.x:-y}"]}`:                 "command[2]",
		`{"command": ["bash", "-e", "-c", "echo ${tasks.a.output}"]}`:                       "command[3]",
		`{"command": ["env", "X=1", "sh", "-c", "echo ${tasks.a.output}"]}`:                 "command[4]",
		`{"command": ["timeout", "5", "/bin/sh", "-ec", "echo ${tasks.a.output}"]}`:         "command[4]",
		`{"command": ["sh", "-c", "echo $X"], "env": {"X": "${tasks.a.output}"}}`:           "",
		`{"command": ["sh", "-c", "echo $1 $${tasks.a.output}", "_", "${tasks.a.output}"]}`: "",
		`{"command": ["echo", "-c", "${tasks.a.output}"]}`:                                  "",
	} {
		problems := (&Kind{Enabled: true}).Validate(json.RawMessage(with))
		switch {
		case field == "" && len(problems) > 0:
			t.Errorf("%s: problems %v, want none", with, problems)
		case field != "" && (len(problems) != 1 || !problems[0].Warning || problems[0].Field != field):
			t.Errorf("%s: %v, want a warning about %s", with, problems, field)
		}
	}
}
