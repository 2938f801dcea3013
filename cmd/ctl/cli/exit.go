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
	ExitFailed      = 1   // it was tried and failed, or the answer is no
	ExitUsage       = 2   // nothing was tried: the command line or the manifest is wrong
	ExitPaused      = 3   // a run waits for an operator
	ExitDegraded    = 4   // a run is done, but something was ignored or skipped by policy
	ExitInterrupted = 130 // a signal ended it
	ExitPipe        = 141 // the reader of its output is gone
)

// ExitError ends a command with an exit code.
type ExitError struct {
	Code int
	// Err is what to tell; nil when everything has been said.
	Err error
}

// Error is what to tell.
func (e *ExitError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit status %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap is the cause.
func (e *ExitError) Unwrap() error { return e.Err }

// Usagef says what is wrong with a command line. Nothing has been done.
func Usagef(format string, args ...any) error {
	return &ExitError{Code: ExitUsage, Err: fmt.Errorf(format, args...)}
}

// NoArgs refuses arguments of a command that takes flags alone.
func NoArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Usagef("%s takes no arguments: leave %q out", cmd.CommandPath(), args[0])
	}
	return nil
}

// Failed ends a command with status 1 when everything has been said already.
func Failed() error { return &ExitError{Code: ExitFailed} }

// Silently ends a command with a status when everything has been said already.
func Silently(code int) error {
	if code == ExitOK {
		return nil
	}
	return &ExitError{Code: code}
}

// Interrupted ends a command that a signal stopped; err says what continues without it.
func Interrupted(err error) error { return &ExitError{Code: ExitInterrupted, Err: err} }

// Code is the exit code that an error calls for, and whether it is still to be told.
func Code(err error) (code int, tell bool) {
	var exit *ExitError
	switch {
	case err == nil:
		return ExitOK, false
	case errors.Is(err, syscall.EPIPE):
		return ExitPipe, false
	case errors.As(err, &exit):
		return exit.Code, exit.Err != nil
	default:
		return ExitFailed, true
	}
}
