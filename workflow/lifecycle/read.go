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
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// read reads what the workflow is going to read: files, templates, kubeconfigs, and the objects that hold them. Whatever it finds wrong is a
// problem, of the parameters or of this machine. In the daemon an object that is missing, or cannot be read now, is an error: it may be there
// later.
func (c *checker) read(ctx context.Context, call *task.Call, made any) (problems []workflow.Problem, err error) {
	failed := func(field string, wrong error) {
		if wrong != nil && !c.deps.local() && !task.IsFinal(wrong) {
			err = errors.Join(err, fmt.Errorf("%s.%s: %w", at, field, wrong))
		} else if wrong != nil {
			message := wrong.Error()
			if rest, ok := strings.CutPrefix(message, "with.cluster"); ok { // as a task calls it
				more, rest, _ := strings.Cut(rest, ": ")
				field, message = field+more, rest
			}
			problems = append(problems, workflow.Problem{Field: at + "." + field, Message: message, Remedy: "the run reads it later: make it readable, or correct the parameter"})
		}
	}
	open := func(field string, ref *access.ClusterRef) {
		_, err := c.deps.Clusters.Open(ctx, call, *ref)
		failed(field, err)
	}
	p := c.params
	if r, ok := made.(provider.Reader); ok {
		own := sequence.NewContext(ctx, call, c.deps.Clusters)
		r.Read(&own, c.name, failed)
	}
	if !c.is("create") || !c.management() {
		open("management", cmp.Or(p.Management, &access.ClusterRef{}))
	}
	if p.Access != nil && c.name == WorkloadUpgrade { // a creation may make it
		open("access", p.Access)
	}
	b := p.Bootstrap
	if c.pivots() && b != nil && b.Cluster != nil {
		open("bootstrap.cluster", b.Cluster)
	}
	if !c.deps.local() {
		return problems, err
	}
	if c.pivots() && b != nil && b.Kind != nil {
		_, err := exec.LookPath(cmp.Or(b.Kind.Program, "kind"))
		failed("bootstrap.kind.program", err)
		failed("bootstrap.kind.config", readable(b.Kind.Config))
	}
	if w := p.WriteConfig; w != nil && w.File != "" && !c.is("delete") {
		failed("writeConfig.file", readable(filepath.Dir(w.File)))
	}
	return problems, err
}

// readable returns why a file, or a folder, is not there; nil if none is named.
func readable(path string) error {
	if path == "" {
		return nil
	}
	_, err := os.Stat(path)
	return err
}
