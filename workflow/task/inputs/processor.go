package inputs

import (
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/drone/envsubst/v2/parse"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/yamlprocessor"
)

// ErrTemplate says that a template becomes too much.
var ErrTemplate = errors.New("the variables of the template become too much text: use fewer, or shorter ones")

// templateVariables bounds the text that all variables of a template become, and the intermediate ones, in bytes.
const templateVariables = 8 << 20

// Processor fills in the variables of a template as clusterctl does, if what they become is not too much: a short template may use a long
// variable, or replace something in it, often.
type Processor struct{ *yamlprocessor.SimpleProcessor }

// NewProcessor makes one.
func NewProcessor() Processor { return Processor{yamlprocessor.NewSimpleProcessor()} }

// Process fills in the variables.
func (p Processor) Process(template []byte, value func(string) (string, error)) ([]byte, error) {
	tree, err := parse.Parse(spaced.ReplaceAllStringFunc(string(template), unspaced))
	if err != nil {
		return template, fmt.Errorf("reading the variables of the template: %w", err)
	}
	m := &measure{value: value}
	if m.size(tree.Root); m.all > templateVariables {
		return template, fmt.Errorf("%w%s", ErrTemplate, m.why)
	}
	return p.SimpleProcessor.Process(template, value)
}

// spaced is a variable with spaces, which clusterctl takes out first.
var spaced = regexp.MustCompile(`\$\{\s*[A-Za-z0-9_$]+\s*\}`)

func unspaced(variable string) string { return strings.Join(strings.Fields(variable), "") }

// measure adds up what the functions of a template take at most.
type measure struct {
	value func(string) (string, error)
	all   int
	why   string // where one variable alone is too much
}

// size is how long the text of a node is at most. It looks at nothing more where it is too much already.
func (m *measure) size(node parse.Node) (size int) {
	if m.all > templateVariables {
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
		text, _ := m.value(node.Param) // what has no value is an error later
		args, took := 0, 0
		for _, one := range node.Args {
			args += m.size(one)
		}
		switch {
		case strings.HasPrefix(node.Name, "/"):
			size = len(text) + (len(text)+1)*args // each byte may be replaced
		case len(node.Args) > 0 && (strings.HasPrefix(node.Name, "#") || strings.HasPrefix(node.Name, "%")):
			size, took = len(text), len(text)*len(text) // each part of it is matched
		default:
			size = len(text) + args
		}
		if m.all += size + args + took; took > templateVariables {
			m.why = fmt.Sprintf(": ${%s%s...} tries each part of the value, which has %d bytes: give the variable a value that needs no cutting, or one of at most %d bytes",
				node.Param, node.Name, len(text), int(math.Sqrt(templateVariables)))
		}
	}
	return size
}
