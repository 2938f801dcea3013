package cli

import "github.com/spf13/pflag"

// ReasonVar adds the option --reason of the commands whose decisions are recorded.
func ReasonVar(f *pflag.FlagSet, reason *string) {
	f.StringVar(reason, "reason", "", "Why you decide so; it is recorded in the event log")
}
