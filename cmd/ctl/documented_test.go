package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"testing"

	"sigs.k8s.io/yaml"

	"scute.dev/api/v1alpha1"
	runs "scute.dev/cmd/ctl/run"
	"scute.dev/config/crd"
	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle"
	"scute.dev/workflow/manifest"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks"
)

// beforeDocumented has the tasks that parts of WorkflowRuns in the documentation refer to.
const beforeDocumented = `
- {name: hold, kind: Pause, with: {all: true}}
- {name: upgrade, kind: Exec, needs: [hold], with: {command: ["true"]}}
- {name: choose, kind: Exec, with: {command: ["true"]}}
- {name: address, kind: Exec, with: {command: ["true"]}}
- {name: raise, kind: Exec, with: {command: ["true"]}}
`

// TestDocumentedYAML checks every YAML block in the documentation and the examples of RepairPolicies with the manifest
// reader, the schemas, and the checks of task kinds. A part of a WorkflowRun is checked within a complete one.
func TestDocumentedYAML(t *testing.T) {
	block := regexp.MustCompile("(?sm)^```yaml\n(.*?)^```$")
	checked := map[string]int{}
	for _, file := range documentation(t) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		blocks := [][]byte{text}
		if filepath.Ext(file) == ".md" {
			blocks = nil
			for _, m := range block.FindAllSubmatch(text, -1) {
				blocks = append(blocks, m[1])
			}
		}
		for _, b := range blocks {
			kind, problems := checkDocumented(b)
			checked[kind]++
			for _, p := range problems {
				t.Errorf("%s: %s\n%s", file, p, b)
			}
		}
	}
	for _, kind := range []string{"WorkflowRun", "RepairPolicy", "Move", "part of a WorkflowRun"} {
		if checked[kind] == 0 {
			t.Errorf("the documentation has no %s; checked: %v", kind, checked)
		}
	}
}

// documentation returns the pages, and the examples that TestExamples does not run.
func documentation(t *testing.T) []string {
	t.Helper()
	files := []string{"../../README.md", "../../charts/scute/README.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" || filepath.Base(filepath.Dir(path)) == "repair" && filepath.Ext(path) == ".yaml" {
			files = append(files, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// checkDocumented returns the kind of a YAML block and its problems. A block with [...] is incomplete and not checked.
func checkDocumented(block []byte) (kind string, problems []string) {
	var content any
	if err := yaml.Unmarshal(block, &content); err != nil {
		return "", []string{err.Error()}
	}
	spec := map[string]any{}
	switch content := content.(type) {
	case []any:
		spec["tasks"] = content
	case map[string]any:
		kind, _ := content["kind"].(string)
		switch {
		case bytes.Contains(block, []byte("[...]")) || kind == "" && content["hooks"] == nil:
			return "other", nil
		case kind == "WorkflowRun":
			return kind, checkWorkflowRun(block)
		case content["apiVersion"] == v1alpha1.GroupVersion().String():
			return kind, checkResource(kind, block)
		case content["apiVersion"] != nil:
			return "other", nil
		case content["hooks"] != nil:
			spec = content
		default:
			content["name"] = "documented"
			spec["tasks"] = []any{content}
		}
	}
	text, err := partOfWorkflowRun(spec)
	if err != nil {
		return "", []string{err.Error()}
	}
	return "part of a WorkflowRun", checkWorkflowRun(text)
}

// partOfWorkflowRun returns a WorkflowRun around a part of one. Added tasks without needs get the existing tasks as
// needs.
func partOfWorkflowRun(spec map[string]any) ([]byte, error) {
	var tasks []any
	if err := yaml.Unmarshal([]byte(beforeDocumented), &tasks); err != nil {
		return nil, err
	}
	added, _ := spec["tasks"].([]any)
	for _, a := range added {
		if a, ok := a.(map[string]any); ok && a["needs"] == nil {
			a["needs"] = []any{"upgrade", "choose", "address", "raise"}
		}
	}
	spec["tasks"] = append(tasks, added...)
	return json.Marshal(map[string]any{
		"apiVersion": v1alpha1.GroupVersion().String(), "kind": "WorkflowRun", "metadata": map[string]any{"name": "documented", "namespace": "fleet"}, "spec": spec,
	})
}

// checkWorkflowRun returns the problems that `scutectl run` reports before it starts.
func checkWorkflowRun(text []byte) (said []string) {
	w, problems, err := runs.Manifest("-", bytes.NewReader(text))
	if err != nil {
		return []string{err.Error()}
	}
	if w != nil {
		o := tasks.Options{Clusters: &access.Clusters{Local: true}, Local: true, ExecEnabled: true}
		kinds := tasks.Kinds(o)
		env := &manifest.Env{Kinds: kinds, NamedWorkflow: func(ctx context.Context, namespace, name string, params json.RawMessage) (task.NamedWorkflow, []workflow.Problem) {
			return lifecycle.New(ctx, name, params, lifecycle.Deps{Clusters: o.Clusters, Kinds: kinds, Namespace: namespace})
		}}
		problems = append(problems, env.Check(w.Namespace, w.Name, &w.Spec)...)
	}
	for _, p := range problems {
		if !p.Warning {
			said = append(said, p.String())
		}
	}
	return said
}

// checkResource returns the problems that an API server with strict field validation reports.
func checkResource(kind string, block []byte) (problems []string) {
	v, err := crd.New(kind)
	if err != nil {
		return []string{err.Error()}
	}
	var object map[string]any
	if err := yaml.Unmarshal(block, &object); err != nil {
		return []string{err.Error()}
	}
	for _, path := range v.UnknownFields(object) {
		problems = append(problems, path+": unknown field")
	}
	for _, e := range v.Validate(context.Background(), object) {
		problems = append(problems, e.Error())
	}
	return problems
}
