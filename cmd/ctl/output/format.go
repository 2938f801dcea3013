package output

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/cli-runtime/pkg/printers"

	"scute.dev/cmd/ctl/cli"
)

// Format is what -o says. The zero value is the command's own text.
type Format struct {
	Value string
	// allowed besides those with an argument.
	allowed []string
}

const jsonPath = "jsonpath"

// AddFlag registers -o with the formats that the command has.
func (f *Format) AddFlag(flags *pflag.FlagSet, allowed ...string) {
	f.allowed = allowed
	flags.StringVarP(&f.Value, "output", "o", "", "Format: "+strings.Join(allowed, ", "))
}

// Validate says which formats there are.
func (f *Format) Validate() error {
	kind, template, hasTemplate := strings.Cut(f.Value, "=")
	switch {
	case f.Value == "":
		return nil
	case !slices.Contains(f.allowed, kind) && !(hasTemplate && slices.Contains(f.allowed, jsonPath+"=...") && kind == jsonPath):
		return cli.Usagef("-o %s is not known: it must be one of %s", f.Value, strings.Join(f.allowed, ", "))
	case kind == jsonPath:
		if _, err := printers.NewJSONPathPrinter(template); err != nil {
			return cli.Usagef("-o %s: %w", f.Value, err)
		}
	}
	return nil
}

// Text says that the command prints its own text; wide that it is to say more.
func (f *Format) Text() (text, wide bool) {
	return f.Value == "" || f.Value == "wide", f.Value == "wide"
}

// Print writes a resource, or a list of them, which must know its kind.
func (f *Format) Print(w io.Writer, o runtime.Object) error {
	var p printers.ResourcePrinter
	switch kind, template, _ := strings.Cut(f.Value, "="); kind {
	case "json":
		p = &printers.JSONPrinter{}
	case "yaml":
		p = &printers.YAMLPrinter{}
	case "name":
		p = &printers.NamePrinter{}
	case jsonPath:
		j, err := printers.NewJSONPathPrinter(template)
		if err != nil {
			return cli.Usagef("-o %s: %w", f.Value, err)
		}
		j.AllowMissingKeys(true)
		p = j
	default:
		return fmt.Errorf("no printer for -o %s", f.Value)
	}
	if kind, _, _ := strings.Cut(f.Value, "="); kind != jsonPath {
		p = &printers.OmitManagedFieldsPrinter{Delegate: p}
	}
	return p.PrintObj(o, w)
}
