package run

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"slices"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/document"
	"scute.dev/workflow"
)

// Manifest reads a WorkflowRun from a file, or from in if the path is "-". It returns all problems of the manifest that it can find at
// once, and an error if the file cannot be read.
func Manifest(path string, in io.Reader) (*v1alpha1.WorkflowRun, []workflow.Problem, error) {
	data, err := read(path, in)
	if err != nil {
		return nil, nil, err
	}
	documents, err := split(data)
	switch {
	case err != nil:
		return nil, nil, fmt.Errorf("%s: %w", path, err)
	case len(documents) == 0:
		return nil, []workflow.Problem{{Field: path, Message: "the manifest is empty", Remedy: "write a WorkflowRun"}}, nil
	case len(documents) > 1:
		return nil, []workflow.Problem{{Field: path, Message: fmt.Sprintf("the manifest has %d documents", len(documents)), Remedy: "write one WorkflowRun to a file"}}, nil
	}
	if err := check(documents[0]); err != nil {
		return nil, nil, fmt.Errorf("reading the manifest: %s: %w", path, err)
	}
	text, object := documents[0], decodeObject(documents[0])
	problems := removeBadDurations(object["spec"], "spec")
	if len(problems) > 0 {
		if text, err = json.Marshal(object); err != nil {
			return nil, nil, err
		}
	}
	broken, err := againstSchema(object)
	if err != nil {
		return nil, nil, err
	}
	w, more := decode(text, object != nil)
	if w == nil && len(broken) > 0 { // these problems have the path of the field
		return nil, append(problems, broken...), nil
	}
	problems = append(problems, mergeProblems(broken, more)...)
	if w == nil {
		return nil, problems, nil
	}
	if w.Spec.ServiceAccountName == "" {
		w.Spec.ServiceAccountName = "default" // the default of the resource, because a run may be handed over to a cluster
	}
	if w.APIVersion != v1alpha1.GroupVersion().String() || w.Kind != "WorkflowRun" {
		problems = append(problems, workflow.Problem{
			Field: "kind", Message: fmt.Sprintf("apiVersion is %q and kind is %q", w.APIVersion, w.Kind),
			Remedy: fmt.Sprintf("write apiVersion: %s and kind: WorkflowRun", v1alpha1.GroupVersion()),
		})
	}
	for _, p := range validation.IsDNS1123Subdomain(w.Name) {
		problems = append(problems, workflow.Problem{Field: "metadata.name", Message: fmt.Sprintf("%q is not a valid name in Kubernetes", w.Name), Remedy: p})
	}
	if w.Namespace != "" {
		for _, p := range validation.IsDNS1123Label(w.Namespace) {
			problems = append(problems, workflow.Problem{Field: "metadata.namespace", Message: fmt.Sprintf("%q is not a valid namespace in Kubernetes", w.Namespace), Remedy: p})
		}
	}
	return w, problems, nil
}

func read(path string, in io.Reader) ([]byte, error) {
	if path != "-" {
		file, err := os.Open(path)
		if err != nil {
			return nil, fmt.Errorf("reading the manifest: %w", err)
		}
		defer file.Close()
		in = file
	}
	data, err := io.ReadAll(io.LimitReader(in, document.MaxSize+1))
	if err != nil {
		return nil, fmt.Errorf("reading the manifest: %w", err)
	}
	data = document.ToUTF8(data)
	if err := document.CheckBounds(data); err != nil {
		return nil, fmt.Errorf("reading the manifest: %s is %w", path, err)
	}
	return data, nil
}

// split returns the documents that have content.
func split(data []byte) ([][]byte, error) {
	var out [][]byte
	reader := yaml.NewYAMLReader(bufio.NewReader(bytes.NewReader(data)))
	for {
		document, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if hasContent(document) {
			out = append(out, document)
		}
	}
}

// hasContent reports whether a document has more than comments and separators.
func hasContent(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}

// check returns an error if decoding a document would lose a part of it. It accepts the key on of a need, although YAML reads it as true.
func check(text []byte) error {
	err := document.Check(text)
	var keys *document.KeyError
	if errors.As(err, &keys) {
		need := regexp.MustCompile(`^spec\.tasks\.\d+\.needs\.\d+$`)
		if keys.Paths = slices.DeleteFunc(keys.Paths, need.MatchString); len(keys.Paths) == 0 {
			if errors.Is(err, document.ErrMultipleDocuments) {
				return document.ErrMultipleDocuments
			}
			return nil
		}
	}
	return err
}

// strict is a WorkflowRun for strict decoding, without its method UnmarshalJSON.
type strict v1alpha1.WorkflowRun

// decode decodes a manifest. It returns a problem for an unknown field, and for a field that occurs twice. A field may override a field of a merge key.
// isObject reports whether the manifest can be decoded as an object.
func decode(text []byte, isObject bool) (*v1alpha1.WorkflowRun, []workflow.Problem) {
	w := &v1alpha1.WorkflowRun{}
	var data json.RawMessage
	var unknown []error
	err := document.Unmarshal(text, &data)
	if err == nil {
		unknown, err = kjson.UnmarshalStrict(data, (*strict)(w))
	}
	switch {
	case len(data) > 0 && !isObject:
		return nil, []workflow.Problem{{
			Field: "manifest", Message: "it is a string, a number or a list", Remedy: "write an object with apiVersion, kind: WorkflowRun, metadata and spec",
		}}
	case err != nil:
		return nil, []workflow.Problem{{Field: "manifest", Message: err.Error(), Remedy: "correct it"}}
	}
	problems := duplicates(text)
	for _, err := range unknown {
		field := strings.TrimSuffix(strings.TrimPrefix(err.Error(), `unknown field "`), `"`)
		problems = append(problems, workflow.Problem{Field: field, Message: "unknown field", Remedy: "remove it or correct its name"})
	}
	return w, problems
}

// namedProblems bounds the number of problems with keys.
const namedProblems = 10

// duplicates returns a problem for each key that occurs twice in an object, and for each key that YAML reads as a boolean, such as y and off.
func duplicates(text []byte) (problems []workflow.Problem) {
	var document yaml3.Node
	if yaml3.Unmarshal(text, &document) != nil { //nolint:forbidigo // it is bounded
		return nil // decode returns the error
	}
	boolean := regexp.MustCompile(`^([yYnN]|[yY]es|YES|[nN]o|NO|On|ON|[oO]ff|OFF)$`)
	var visit func(node *yaml3.Node)
	visit = func(node *yaml3.Node) {
		lines := make(map[string]int, len(node.Content)/2)
		for i, child := range node.Content {
			if len(problems) == namedProblems {
				return
			}
			visit(child)
			if node.Kind != yaml3.MappingNode || i%2 == 1 || child.Kind != yaml3.ScalarNode || child.Tag == "!!merge" {
				continue
			}
			if before, twice := lines[child.Value]; twice {
				problems = append(problems, workflow.Problem{Field: "manifest", Message: fmt.Sprintf("line %d: key %q is already set in line %d", child.Line, child.Value, before), Remedy: "remove one of the two"})
			}
			if lines[child.Value] = child.Line; child.Style == 0 && boolean.MatchString(child.Value) {
				problems = append(problems, workflow.Problem{Field: "manifest", Message: fmt.Sprintf("line %d: key %s is read as true or false", child.Line, child.Value), Remedy: "put it in quotes"})
			}
		}
	}
	visit(&document)
	return problems
}
