package kube

import (
	"bytes"
	"errors"
	"fmt"

	"k8s.io/client-go/util/jsonpath"
)

// Field returns the value at a JSONPath of an object, such as .status.phase, or "".
//
// The path, and often the object, is untrusted. Therefore a path may contain only fields, indexes
// and filters, each of which finds at most what the object contains. Paths that multiply their
// results (..a..a, ['a','a']) could exhaust the memory.
func Field(o map[string]any, path string) (string, error) {
	text := "{" + path + "}"
	parsed, err := jsonpath.Parse("field", text)
	if err == nil {
		err = checkPath(parsed.Root)
	}
	p := jsonpath.New("field").AllowMissingKeys(true)
	if err == nil {
		err = p.Parse(text)
	}
	if err != nil {
		return "", fmt.Errorf("reading JSONPath %s: %w", path, err)
	}
	var found bytes.Buffer
	if err := p.Execute(&found, o); err != nil {
		return "", fmt.Errorf("evaluating JSONPath %s: %w", path, err)
	}
	return found.String(), nil
}

func checkPath(root *jsonpath.ListNode) error {
	if len(root.Nodes) == 1 {
		if path, is := root.Nodes[0].(*jsonpath.ListNode); is {
			return checkSteps(path.Nodes, false)
		}
	}
	return errors.New("it has more than one path: name one field")
}

// checkSteps checks a path, or one side of a comparison, which may be a value.
func checkSteps(nodes []jsonpath.Node, comparison bool) error {
	for _, node := range nodes {
		var err error
		switch node := node.(type) {
		case *jsonpath.FieldNode, *jsonpath.ArrayNode, *jsonpath.WildcardNode:
		case *jsonpath.FilterNode:
			err = errors.Join(checkSteps(node.Left.Nodes, true), checkSteps(node.Right.Nodes, true))
		case *jsonpath.ListNode:
			err = checkSteps(node.Nodes, comparison)
		case *jsonpath.TextNode, *jsonpath.IntNode, *jsonpath.FloatNode, *jsonpath.BoolNode:
			if !comparison {
				err = fmt.Errorf("%s is a value: name a field", node)
			}
		default:
			err = fmt.Errorf("%s is not allowed: name the field by its full path, with indexes and filters where it is in a list", node)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
