package cli

import "github.com/spf13/pflag"

// ReasonVar adds --reason for commands that record a decision.
func ReasonVar(f *pflag.FlagSet, reason *string) {
	f.StringVar(reason, "reason", "", "Reason for the decision; it is recorded in the event log")
}
