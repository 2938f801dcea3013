package cli

import (
	"errors"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// BadFlag describes an invalid option, for SetFlagErrorFunc. The error contains the expected value with an example, or the most similar option.
func BadFlag(cmd *cobra.Command, err error) error {
	if typed := cmd.Flags().Args(); cmd.HasSubCommands() && len(typed) > 0 {
		if err := cmd.ValidateArgs(typed); err != nil {
			return err // an unknown command, whose options are unknown too
		}
	}
	var value *pflag.InvalidValueError
	var unknown *pflag.NotExistError
	switch {
	case errors.As(err, &value):
		return badValue(value)
	case errors.As(err, &unknown):
		var names []string
		cmd.Flags().VisitAll(func(f *pflag.Flag) {
			if !f.Hidden {
				names = append(names, f.Name)
			}
		})
		if meant := Nearest(unknown.GetSpecifiedName(), names); meant != "" && unknown.GetSpecifiedShortnames() == "" {
			return Usagef("unknown flag: --%s, did you mean --%s?", unknown.GetSpecifiedName(), meant)
		}
	}
	return Usagef("%w", err)
}

func badValue(e *pflag.InvalidValueError) error {
	name, value := e.GetFlag().Name, e.GetValue()
	what := map[string]string{
		"int":         "a whole number, for example 10",
		"int64":       "a number of bytes, for example 1073741824",
		"uint64":      "a whole number greater than zero, for example 812",
		"duration":    "a duration, for example 90s, 10m or 1h30m",
		"bool":        "true or false, or no value",
		"stringSlice": "a value, or several with commas between them, for example a,b",
	}[e.GetFlag().Value.Type()]
	switch {
	case what == "": // the errors of scutectl's own types contain this
		return Usagef("--%s is %q: %w", name, value, errors.Unwrap(e))
	case errors.Is(e, strconv.ErrRange):
		what += "; this value is out of range"
	}
	return Usagef("--%s is %q: it must be %s", name, value, what)
}

// ReasonVar adds the option --reason for commands that record a decision.
func ReasonVar(f *pflag.FlagSet, reason *string) {
	f.StringVar(reason, "reason", "", "Reason for the decision; it is recorded in the event log")
}
