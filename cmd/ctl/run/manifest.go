package run

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"

	yaml3 "go.yaml.in/yaml/v3"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	kjson "sigs.k8s.io/json"

	"scute.dev/api/v1alpha1"
	"scute.dev/config/crd"
	"scute.dev/kube/document"
	"scute.dev/workflow"
)

// Manifest reads a WorkflowRun from a file, or from in if the path is "-". It returns all problems
// of the manifest at once. The error means that the file cannot be read.
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
	w, problems, err := decode(documents[0])
	if w == nil || err != nil {
		return nil, problems, err
	}
	if w.Spec.ServiceAccountName == "" {
		w.Spec.ServiceAccountName = "default" // as in the resource: the run may later be handed over to a cluster
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

// split returns the documents of a YAML stream. It omits documents without content.
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

func hasContent(document []byte) bool {
	for line := range strings.Lines(string(document)) {
		if line = strings.TrimSpace(line); line != "" && line != "---" && !strings.HasPrefix(line, "#") {
			return true
		}
	}
	return false
}

// check returns an error if decoding would lose a part of the document. It accepts the key "on" in
// an entry of needs, although YAML reads that key as true.
func check(text []byte) error {
	err := document.Check(text)
	if keys, ok := errors.AsType[*document.KeyError](err); ok {
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

// strict is a WorkflowRun without UnmarshalJSON, for strict decoding.
type strict v1alpha1.WorkflowRun

// decode returns the WorkflowRun, or nil if it cannot be decoded, and all problems. A field may
// override a field of a merge key.
func decode(text []byte) (w *v1alpha1.WorkflowRun, problems []workflow.Problem, err error) {
	var data json.RawMessage
	if err := document.Unmarshal(text, &data); err != nil {
		return nil, []workflow.Problem{{Field: "manifest", Message: err.Error(), Remedy: "correct it"}}, nil //nolint:nilerr // it is a problem
	}
	var object map[string]any
	if err := kjson.UnmarshalCaseSensitivePreserveInts(data, &object); err != nil || object == nil {
		return nil, []workflow.Problem{{ //nolint:nilerr // it is a problem
			Field: "manifest", Message: "it is a string, a number or a list", Remedy: "write an object with apiVersion, kind: WorkflowRun, metadata and spec",
		}}, nil
	}
	problems = removeBadDurations(object["spec"], "spec")
	if len(problems) > 0 {
		if data, err = json.Marshal(object); err != nil {
			return nil, nil, err
		}
	}
	broken, err := againstSchema(object)
	if err != nil {
		return nil, nil, err
	}
	w = &v1alpha1.WorkflowRun{}
	unknown, err := kjson.UnmarshalStrict(data, (*strict)(w))
	switch {
	case err != nil && len(broken) > 0: // these problems have the path of the field
		return nil, append(problems, broken...), nil
	case err != nil:
		return nil, append(problems, workflow.Problem{Field: "manifest", Message: err.Error(), Remedy: "correct it"}), nil //nolint:nilerr // it is a problem
	}
	more := duplicates(text)
	for _, err := range unknown {
		field := strings.TrimSuffix(strings.TrimPrefix(err.Error(), `unknown field "`), `"`)
		more = append(more, workflow.Problem{Field: field, Message: "unknown field", Remedy: "remove it or correct its name"})
	}
	return w, append(problems, mergeProblems(broken, more)...), nil
}

// namedProblems is the maximum number of keys that duplicates reports.
const namedProblems = 10

// duplicates returns a problem for each key that occurs twice in an object, and for each key that
// YAML reads as a boolean, such as y and off.
func duplicates(text []byte) (problems []workflow.Problem) {
	var document yaml3.Node
	if yaml3.Unmarshal(text, &document) != nil { //nolint:forbidigo // it is bounded
		return nil
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

// againstSchema returns the problems for which an API server would reject a manifest. It ignores
// the maximum numbers of tasks and needs, which exist only so that the resource fits into etcd.
func againstSchema(object map[string]any) ([]workflow.Problem, error) {
	if object["spec"] == nil {
		return nil, nil
	}
	v, err := crd.New("WorkflowRun")
	if err != nil {
		return nil, err
	}
	errs := slices.DeleteFunc(v.Validate(context.Background(), object), func(err *field.Error) bool {
		return err.Type == field.ErrorTypeTooMany && (err.Field == "spec.tasks" || strings.HasSuffix(err.Field, ".needs"))
	})
	var problems []workflow.Problem
	for _, err := range errs {
		problems = append(problems, workflow.Problem{Field: strings.Replace(err.Field, "<nil>", "spec", 1), Message: err.ErrorBody(), Remedy: "correct it"})
	}
	slices.SortStableFunc(problems, func(a, b workflow.Problem) int { return strings.Compare(a.Field, b.Field) })
	return problems, nil
}

// mergeProblems returns all problems in known, and the problems in read about other fields. For the
// same field it prefers known, whose remedy is better.
func mergeProblems(read, known []workflow.Problem) []workflow.Problem {
	named := make(map[string]bool, len(known))
	for i := range known {
		named[known[i].Field] = true
	}
	read = slices.DeleteFunc(slices.Clone(read), func(p workflow.Problem) bool { return named[p.Field] })
	return append(read, known...)
}

// removeBadDurations removes invalid durations from v, and returns a problem with the path of each.
// The decoder would stop at the first invalid duration, and would not report its path.
func removeBadDurations(v any, path string) (problems []workflow.Problem) {
	switch v := v.(type) {
	case []any:
		for i := range v {
			problems = append(problems, removeBadDurations(v[i], fmt.Sprintf("%s[%d]", path, i))...)
		}
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			switch key {
			case "with", "undo", "params": // the task kinds check these
			case "timeout", "totalTimeout", "deadline", "delay", "maxDelay":
				text, ok := v[key].(string)
				if _, err := v1alpha1.ParseDuration(text); v[key] != nil && (!ok || err != nil) {
					problems = append(problems, workflow.Problem{Field: path + "." + key, Message: fmt.Sprintf("%v is not a duration", v[key]), Remedy: "write one like 90s, 5m or 1h30m"})
					delete(v, key)
				}
			default:
				problems = append(problems, removeBadDurations(v[key], path+"."+key)...)
			}
		}
	}
	return problems
}
