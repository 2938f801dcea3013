package output

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"k8s.io/client-go/util/jsonpath"
	"sigs.k8s.io/yaml"

	"scute.dev/cmd/ctl/cli"
)

// PrintValue writes what is no resource, by its JSON.
func (f *Format) PrintValue(w io.Writer, v any) error {
	data, err := json.MarshalIndent(v, "", "    ")
	if err != nil {
		return fmt.Errorf("encoding: %w", err)
	}
	switch kind, template, _ := strings.Cut(f.Value, "="); kind {
	case "json":
		data = append(data, '\n')
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
			return cli.Usagef("-o %s: %w", f.Value, err)
		}
		return p.Execute(w, plain)
	default:
		return fmt.Errorf("no printer for -o %s", f.Value)
	}
	_, err = w.Write(data)
	return err
}
