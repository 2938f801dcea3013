package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// checkReadable tries to read everything that the workflow will read: files, templates, kubeconfigs, and the objects that contain them. It returns a problem
// for each failure. In the daemon a failed read of an object is an error and no problem, because a later attempt may succeed.
func (c *checker) checkReadable(ctx context.Context, call *task.Call, made any) (problems []workflow.Problem, err error) {
	failed := func(field string, wrong error) {
		if wrong != nil && !c.deps.isLocal() && !task.IsFinal(wrong) {
			err = errors.Join(err, fmt.Errorf("%s.%s: %w", paramsField, field, wrong))
		} else if wrong != nil {
			message := wrong.Error()
			if rest, ok := strings.CutPrefix(message, "with.cluster"); ok { // the name of the field in a task
				more, rest, _ := strings.Cut(rest, ": ")
				field, message = field+more, rest
			}
			problems = append(problems, workflow.Problem{Field: paramsField + "." + field, Message: message, Remedy: "the run needs it: make it readable, or correct the parameter"})
		}
	}
	open := func(field string, ref *access.ClusterRef) {
		_, err := c.deps.Clusters.Open(ctx, call, *ref)
		failed(field, err)
	}
	p := c.params
	if r, ok := made.(provider.Reader); ok {
		own := provider.NewContext(ctx, call, c.deps.Clusters)
		r.Read(&own, c.name, failed)
	}
	if !c.hasVerb("create") || !c.isManagement() {
		open("management", cmp.Or(p.Management, &access.ClusterRef{}))
	}
	if p.Access != nil && c.name == WorkloadUpgrade { // a creation may only create it
		open("access", p.Access)
	}
	b := p.Bootstrap
	if c.usesPivot() && b != nil && b.Cluster != nil {
		open("bootstrap.cluster", b.Cluster)
	}
	if !c.deps.isLocal() {
		return problems, err
	}
	if c.usesPivot() && b != nil && b.Kind != nil {
		_, err := exec.LookPath(cmp.Or(b.Kind.Program, "kind"))
		failed("bootstrap.kind.program", err)
		failed("bootstrap.kind.config", checkFile(b.Kind.Config))
	}
	if w := p.WriteConfig; w != nil && w.File != "" && !c.hasVerb("delete") {
		failed("writeConfig.file", checkFile(filepath.Dir(w.File)))
	}
	return problems, err
}

// checkFile returns an error if a file or folder does not exist. It returns nil for "".
func checkFile(path string) error {
	if path == "" {
		return nil
	}
	_, err := os.Stat(path)
	return err
}
