package cli

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/spf13/cobra"
)

// Exit codes of scutectl.
const (
	ExitOK          = 0
	ExitFailed      = 1   // the command failed, or the answer is no
	ExitUsage       = 2   // nothing was done: the command line or the manifest is invalid
	ExitPaused      = 3   // a run waits for an operator
	ExitDegraded    = 4   // the run completed, but its policy ignored or skipped a failure
	ExitInterrupted = 130 // ended by a signal
	exitPipe        = 141 // the reader of the output closed the pipe
)

// ExitError is an error that ends a command with this exit code.
type ExitError struct {
	Code int
	// Err is the message; nil if everything is already printed.
	Err error
}

func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

func (e *ExitError) Unwrap() error { return e.Err }

// Usagef returns an error about the command line. The command must not have changed anything
// before.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// NoArgs rejects arguments.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments: remove %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// SilentExit returns an error without a message that ends the command with this exit code.
func SilentExit(code int) error {
	if code == ExitOK {
		return nil
	}
	return &ExitError{Code: code}
}

// Interrupted returns the error of a command that was stopped by a signal. err describes what
// continues although the command has ended.
func Interrupted(err error) error { return &ExitError{Code: ExitInterrupted, Err: err} }

// Code returns the exit code for an error. tell reports whether the message of the error must be
// printed.
func Code(err error) (code int, tell bool) {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK, false
	case errors.Is(err, syscall.EPIPE):
		return exitPipe, false
	case errors.As(err, &exit):
		return exit.Code, exit.Err != nil
	default:
		return ExitFailed, true
	}
}
