package logcmd

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

type schemaOptions struct {
	env *cli.Env
	dir string
}

func newCmdSchema(env *cli.Env) *cobra.Command {
	o := &schemaOptions{env: env}
	cmd := &cobra.Command{
		Use:   "schema [TYPE]",
		Short: "List the event types, or print the JSON Schema of the data of one",
		Long: `List the event types, or print the JSON Schema (draft 2020-12) of the data of one.

A type ends with the version of its data. Data with another format has another version, so a program that can read a type today
can read it for as long as the log exists. --dir writes the schemas of all types, each to a file TYPE.json.`,
		Example:           kit.Examples(env, "$ log schema", "$ log schema dev.scute.move.requested.v1", "$ log schema --dir schemas"),
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: cobra.FixedCompletions(slices.Sorted(maps.Keys(kit.EventTypes())), cobra.ShellCompDirectiveNoFileComp),
		RunE: func(_ *cobra.Command, args []string) error {
			switch {
			case o.dir != "" && len(args) > 0:
				return cli.Usagef("--dir writes the schemas of all types: leave %s out", args[0])
			case o.dir != "":
				return o.writeAll()
			case len(args) > 0:
				return o.print(args[0])
			}
			for _, eventType := range slices.Sorted(maps.Keys(kit.EventTypes())) {
				if err := o.env.Linef("%s", eventType); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().StringVar(&o.dir, "dir", "", "Write the schemas of all types to this folder; it is created if it does not exist")
	return cmd
}

func (o *schemaOptions) print(eventType string) error {
	if _, known := kit.EventTypes()[eventType]; !known {
		meant := cli.DidYouMean(eventType, slices.Collect(maps.Keys(kit.EventTypes())))
		return cli.Usagef("%s is not a type that this scutectl writes%s %s lists them", eventType, cmp.Or(meant, ":"), o.env.Hint("log", "schema"))
	}
	return encodeSchema(o.env.Out, eventType)
}

func (o *schemaOptions) writeAll() error {
	if err := os.MkdirAll(o.dir, 0o750); err != nil {
		return fmt.Errorf("writing the schemas: %w", err)
	}
	for eventType := range kit.EventTypes() {
		var text bytes.Buffer
		if err := encodeSchema(&text, eventType); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(o.dir, eventType+".json"), text.Bytes(), 0o600); err != nil {
			return fmt.Errorf("writing the schemas: %w", err)
		}
	}
	return nil
}

func encodeSchema(w io.Writer, eventType string) error {
	s, err := jsonSchema(eventType, kit.EventTypes()[eventType])
	if err != nil {
		return err
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(s)
}
