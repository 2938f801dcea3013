package exec

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"scute.dev/internal/redact"
	"scute.dev/workflow"
	"scute.dev/workflow/task"
)

// Kind runs a command on the machine of this process.
//
// The variables SCUTE_RUN, SCUTE_TASK, SCUTE_ATTEMPT and SCUTE_KEY identify the attempt; the key is
// the same for all attempts. The file SCUTE_INPUTS maps the name of each needed task to its output,
// and SCUTE_FAILURE describes the failure to a failure handler. JSON that the command writes to the
// file SCUTE_OUTPUT is the output of the task.
//
// When an attempt is interrupted, the command's process group gets SIGTERM, and SIGKILL 10 s later.
// On Linux the command is also killed when scute is killed.
type Kind struct {
	// Enabled must be set, or else anyone who may create a WorkflowRun could run commands in the daemon.
	Enabled bool
}

// With are the inputs of Exec.
type With struct {
	// Command and its arguments. No shell is involved.
	Command []string `json:"command"`
	// Env is added to the environment of the scute process.
	Env map[string]string `json:"env,omitempty"`
	// Dir is the working directory; that of the scute process by default.
	Dir string `json:"dir,omitempty"`
}

const (
	outputLimit = 64 << 10
	stopTimeout = 10 * time.Second
	// drainTimeout limits how long the output of a command is read after the command has ended. Other
	// processes may hold the output open.
	drainTimeout = 2 * time.Second
)

// Validate checks the inputs.
func (e *Kind) Validate(with json.RawMessage) []workflow.Problem {
	w, problems := task.Decode[With](with)
	if len(problems) > 0 {
		return problems
	}
	if !e.Enabled {
		problems.Add("", "Exec is not enabled here", "run it locally, or start the daemon with --enable-exec")
	}
	if len(w.Command) == 0 || w.Command[0] == "" {
		problems.Add("command", "it is empty", `set the program and its arguments, for example [sh, -c, "..."]`)
	}
	problems = append(problems, task.CheckScripts("command", w.Command, "", nil, "pass it by env, or read it from the file $SCUTE_INPUTS")...)
	for _, name := range slices.Sorted(maps.Keys(w.Env)) {
		if name == "" || strings.ContainsAny(name, "=\x00") || strings.HasPrefix(name, "SCUTE_") {
			problems.Add("env."+name, "this name cannot be used", "use another name: the prefix SCUTE_ is reserved, and a name cannot contain =")
		}
		if value := w.Env[name]; redact.IsSecretName(name) && value != "" {
			problems = append(problems, task.SecretProblem("env."+name, "it contains a secret",
				"set it in the environment of scute's own process, which the command inherits, or name a file in NAME_FILE"))
		}
	}
	return problems
}

// Run runs the command once.
func (e *Kind) Run(ctx context.Context, c *task.Call) (json.RawMessage, error) {
	with, err := task.ReadInputs[With](c, e.Validate)
	if err != nil {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "scute-exec-")
	if err != nil {
		return nil, fmt.Errorf("creating a folder for the command's files: %w", err)
	}
	defer os.RemoveAll(dir)
	environment, err := writeFiles(dir, c)
	if err != nil {
		return nil, err
	}
	output, err := openLog(c)
	if err != nil {
		return nil, err
	}
	defer output.Close()

	cmd := exec.Command(with.Command[0], with.Command[1:]...) //nolint:gosec // running the command is the purpose of the task
	cmd.Dir = with.Dir
	cmd.Env = os.Environ()
	for _, name := range slices.Sorted(maps.Keys(with.Env)) {
		cmd.Env = append(cmd.Env, name+"="+with.Env[name])
	}
	cmd.Env = append(cmd.Env, environment...)
	cmd.Stdout, cmd.Stderr = output, output
	cmd.WaitDelay = drainTimeout
	err = runGroup(ctx, cmd, stopTimeout)
	if errors.Is(err, exec.ErrWaitDelay) {
		err = nil // the command succeeded; a process that it started still holds its output open
	}
	if err != nil {
		recorded, _ := readOutput(filepath.Join(dir, "output")) // the failure of the command is returned instead
		return recorded, commandError(ctx, with.Command[0], err, output)
	}
	return readOutput(filepath.Join(dir, "output"))
}

// Undo returns a KeptError: the inverse of a command is another command, which the manifest defines as undo.
func (*Kind) Undo(context.Context, *task.Call) error {
	return &task.KeptError{Reason: "a command has no built-in inverse, and the task sets no undo"}
}

// ReadsInputs marks the kind as a task.InputReader: a command receives its inputs in a file.
func (*Kind) ReadsInputs() {}

// Irreversible returns true, because a command has no built-in inverse.
func (*Kind) Irreversible(json.RawMessage) bool { return true }

func writeFiles(dir string, c *task.Call) ([]string, error) {
	inputs := c.Inputs
	if inputs == nil {
		inputs = map[string]json.RawMessage{}
	}
	files := map[string]any{"inputs": inputs}
	if c.Failure != nil {
		files["failure"] = c.Failure
	}
	environment := []string{
		"SCUTE_RUN=" + c.Run, "SCUTE_TASK=" + c.Task, "SCUTE_ATTEMPT=" + strconv.Itoa(c.Attempt), "SCUTE_KEY=" + c.RequestKey(),
		"SCUTE_OUTPUT=" + filepath.Join(dir, "output"),
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		data, err := json.Marshal(files[name])
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), data, 0o600)
		}
		if err != nil {
			return nil, fmt.Errorf("writing the command's %s: %w", name, err)
		}
		environment = append(environment, "SCUTE_"+strings.ToUpper(name)+"="+filepath.Join(dir, name))
	}
	return environment, nil
}

func commandError(ctx context.Context, command string, err error, output *attemptLog) error {
	said := output.Tail()
	if said != "" {
		said = ": " + said
	}
	var exit *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("%s was stopped: %w%s", command, ctx.Err(), said)
	case errors.As(err, &exit):
		return fmt.Errorf("%s: %w%s", command, err, said)
	case errors.Is(err, exec.ErrNotFound), errors.Is(err, os.ErrNotExist), errors.Is(err, os.ErrPermission):
		return task.Final(fmt.Errorf("with.command: the command cannot be started: %w", err))
	default:
		return fmt.Errorf("running %s: %w%s", command, err, said)
	}
}

// readOutput returns the content of SCUTE_OUTPUT; nil if it is empty.
func readOutput(path string) (json.RawMessage, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) || err == nil && info.Size() == 0 {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading SCUTE_OUTPUT: %w", err)
	}
	if info.Size() > outputLimit {
		return nil, task.Final(fmt.Errorf("the command wrote %d bytes to SCUTE_OUTPUT, and at most %d are allowed: write a reference to large data instead",
			info.Size(), outputLimit))
	}
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading SCUTE_OUTPUT: %w", err)
	}
	if !json.Valid(data) {
		return nil, task.Final(errors.New("the command wrote invalid JSON to SCUTE_OUTPUT: put text in quotes"))
	}
	return data, nil
}
