package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"
	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"
)

// Format is the value of -o. The zero value means the command's own text.
type Format struct {
	Value string
	// allowed lists the command's formats. "jsonpath=..." permits any template.
	allowed []string
}

const jsonPath = "jsonpath"

// AddFlag adds -o with the command's formats, and sets PreRunE to validate it.
func (f *Format) AddFlag(cmd *cobra.Command, allowed ...string) {
	f.allowed = allowed
	cmd.PreRunE = func(*cobra.Command, []string) error { return f.validate() }
	cmd.Flags().StringVarP(&f.Value, "output", "o", "", "Format: "+strings.Join(allowed, ", "))
	offered := make([]string, len(allowed))
	for i, a := range allowed {
		offered[i] = strings.TrimSuffix(a, "...")
	}
	_ = cmd.RegisterFlagCompletionFunc("output", cobra.FixedCompletions(offered, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
}

func (f *Format) validate() error {
	kind, template, hasTemplate := strings.Cut(f.Value, "=")
	switch {
	case f.Value == "":
		return nil
	case !slices.Contains(f.allowed, kind) && !(hasTemplate && slices.Contains(f.allowed, jsonPath+"=...") && kind == jsonPath):
		return Usagef("-o %s is not known: it must be one of %s", f.Value, strings.Join(f.allowed, ", "))
	case kind == jsonPath:
		if err := jsonpath.New("output").Parse(template); err != nil {
			return Usagef("-o %s: %w", f.Value, err)
		}
	}
	return nil
}

// Data reports whether the command prints data for programs. Names do not count as data.
func (f *Format) Data() bool { return f.Value != "" && f.Value != "wide" && f.Value != "name" }

// Print writes a resource, a list of resources with their kind set, or any other value that can be
// encoded as JSON.
func (f *Format) Print(w io.Writer, v any) error {
	if o, ok := v.(runtime.Object); ok {
		omit := printers.OmitManagedFieldsPrinter{Delegate: printers.ResourcePrinterFunc(func(o runtime.Object, w io.Writer) error { return f.print(w, o) })}
		return omit.PrintObj(o, w)
	}
	return f.print(w, v)
}

func (f *Format) print(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	kind, template, _ := strings.Cut(f.Value, "=")
	switch kind {
	case "yaml":
		if data, err = yaml.JSONToYAML(data); err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
	case jsonPath:
		var plain any
		if err := json.Unmarshal(data, &plain); err != nil {
			return fmt.Errorf("encoding: %w", err)
		}
		p := jsonpath.New("output").AllowMissingKeys(true)
		if err := p.Parse(template); err != nil {
			return Usagef("-o %s: %w", f.Value, err)
		}
		return p.Execute(w, plain)
	default:
		data = append(data, '\n')
	}
	_, err = w.Write(data)
	return err
}
