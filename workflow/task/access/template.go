package access

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/drone/envsubst/v2/parse"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"

	"scute.dev/kube/document"
)

// ErrTemplate means that the variables of a template expand to too much text.
var ErrTemplate = errors.New("the variables of the template expand to too much text: use fewer or shorter variables")

// maxExpansion limits the bytes to which the variables of a template expand, including intermediate
// results.
const maxExpansion = 8 << 20

// TemplateProcessor replaces variables as clusterctl does. It rejects a template that expands to
// too much text, because even a short template may use a long variable many times.
type TemplateProcessor struct{ *yamlprocessor.SimpleProcessor }

// NewTemplateProcessor returns a TemplateProcessor.
func NewTemplateProcessor() TemplateProcessor {
	return TemplateProcessor{yamlprocessor.NewSimpleProcessor()}
}

// Process replaces the variables.
func (p TemplateProcessor) Process(template []byte, value func(string) (string, error)) ([]byte, error) {
	tree, err := parse.Parse(spacedVariable.ReplaceAllStringFunc(string(template), removeSpaces))
	if err != nil {
		return template, fmt.Errorf("reading the variables of the template: %w", err)
	}
	m := &measure{value: value}
	if m.size(tree.Root); m.total > maxExpansion {
		return template, fmt.Errorf("%w%s", ErrTemplate, m.reason)
	}
	filled, err := p.SimpleProcessor.Process(template, value)
	if err == nil {
		err = document.CheckBounds(filled)
	}
	return filled, err
}

// spacedVariable matches a variable that contains spaces. clusterctl removes these spaces before it
// replaces variables.
var spacedVariable = regexp.MustCompile(`\$\{\s*[A-Za-z0-9_$]+\s*\}`)

func removeSpaces(variable string) string { return strings.Join(strings.Fields(variable), "") }

// measure adds up upper bounds for the sizes of the results of all functions in a template.
type measure struct {
	value  func(string) (string, error)
	total  int
	reason string // set if a single variable is too large
}

func (m *measure) size(node parse.Node) (size int) {
	if m.total > maxExpansion {
		return 0
	}
	switch node := node.(type) {
	case *parse.TextNode:
		return len(node.Value)
	case *parse.ListNode:
		for _, one := range node.Nodes {
			size += m.size(one)
		}
		return size
	case *parse.FuncNode:
		text, _ := m.value(node.Param) // a missing value is an error later
		args, work := 0, 0
		for _, one := range node.Args {
			args += m.size(one)
		}
		switch {
		case strings.HasPrefix(node.Name, "/"):
			size = len(text) + (len(text)+1)*args // each byte may be replaced
		case len(node.Args) > 0 && (strings.HasPrefix(node.Name, "#") || strings.HasPrefix(node.Name, "%")):
			size, work = len(text), len(text)*len(text) // each part of it is matched
		default:
			size = len(text) + args
		}
		if m.total += size + args + work; work > maxExpansion {
			m.reason = fmt.Sprintf(": ${%s%s...} tries each part of the value, which has %d bytes: set the variable to a value that need not be trimmed, or to one of at most %d bytes",
				node.Param, node.Name, len(text), int(math.Sqrt(maxExpansion)))
		}
	}
	return size
}
