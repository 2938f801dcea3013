package lifecycle

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

type checker struct {
	name     string
	params   *Params
	deps     *Deps
	problems []workflow.Problem
}

// addProblem adds a problem of a field unless the field already has one.
func (c *checker) addProblem(field, message, remedy string) {
	if slices.ContainsFunc(c.problems, func(p workflow.Problem) bool { return p.Field == paramsField+"."+field }) {
		return
	}
	c.problems = append(c.problems, workflow.Problem{Field: paramsField + "." + field, Message: message, Remedy: remedy})
}

func (c *checker) isManagement() bool { return strings.HasPrefix(c.name, "management-") }

func (c *checker) hasVerb(verb string) bool { return strings.HasSuffix(c.name, "-"+verb) }

// usesPivot reports whether the workflow moves a management cluster to or from a bootstrap cluster.
func (c *checker) usesPivot() bool {
	inPlace := c.hasVerb("upgrade") && c.params.Upgrade.Pivot != nil && !*c.params.Upgrade.Pivot
	return c.isManagement() && !inPlace
}

// check checks the parameters as far as that is possible without reading files or clusters.
func (c *checker) check() {
	c.checkCluster()
	if c.usesPivot() {
		c.checkSides()
	}
	if c.hasVerb("upgrade") {
		c.checkVersion("upgrade.version", c.params.Upgrade.Version, "set it to the version to upgrade to, for example v1.36.1")
		c.checkDirection()
		c.checkPause()
	}
	if s := c.params.WriteConfig; s != nil {
		switch {
		case (s.File == "") == (s.ConfigMap == ""):
			c.addProblem("writeConfig", "it must have exactly one destination", "set either file or configMap")
		case s.File != "" && !c.deps.Clusters.IsLocal():
			c.addProblem("writeConfig.file", "a file can only be used in a local run", "set configMap")
		}
	}
	if !c.deps.Clusters.IsLocal() {
		for field, ref := range map[string]*access.ClusterRef{"management": c.params.Management, "access": c.params.Access} {
			if ref != nil && (ref.Kubeconfig != "" || ref.Context != "") {
				c.addProblem(field+".kubeconfig", "a file can only be used in a local run", "use kubeconfigSecretRef")
			}
		}
	}
}

func (c *checker) checkCluster() {
	p := &c.params.Cluster
	if p.Name == "" {
		c.addProblem("cluster.name", "it is empty", "name the cluster")
	} else if wrong := validation.IsDNS1123Subdomain(p.Name); len(wrong) > 0 {
		c.addProblem("cluster.name", wrong[0], "choose another name")
	}
	if p.Namespace == "" {
		c.addProblem("cluster.namespace", "it is empty, and the run has no namespace", "name the namespace of the cluster")
	} else if wrong := validation.IsDNS1123Label(p.Namespace); len(wrong) > 0 {
		c.addProblem("cluster.namespace", wrong[0], "choose another namespace")
	}
	if n := p.ControlPlaneReplicas; n != nil && (*n < 1 || *n%2 == 0) {
		c.addProblem("cluster.controlPlaneReplicas", "etcd needs an odd number of members", "use 1, 3 or 5")
	}
	if n := p.WorkerReplicas; n != nil && *n < 0 {
		c.addProblem("cluster.workerReplicas", "it is negative", "use 0 or more")
	}
	if c.hasVerb("create") {
		c.checkVersion("cluster.version", p.Version, "set it to a version of Kubernetes, for example v1.36.0")
	}
	if own := c.deps.Namespace; !c.deps.Clusters.IsLocal() && own != "" && p.Namespace != own {
		c.addProblem("cluster.namespace", "a run of the daemon can only act in its own namespace, "+own, "remove it, or create the run in that namespace")
	}
}

func (c *checker) checkSides() {
	p := c.params
	switch {
	case p.Bootstrap == nil:
		c.addProblem("bootstrap", "it is empty", "set bootstrap.cluster to a cluster that exists, or bootstrap.kind to create one")
	case c.deps.Clusters.IsLocal() || p.Bootstrap.Cluster == nil:
	case *p.Bootstrap.Cluster != (access.ClusterRef{}):
		c.addProblem("bootstrap.cluster", "the daemon can only move clusters away from its own cluster", "use {}, or run it with `scutectl run --local`")
	}
	if c.hasVerb("create") {
		return
	}
	switch {
	case !c.deps.Clusters.IsLocal():
		c.problems = append(c.problems, workflow.Problem{
			Field: "spec.workflow.name", Message: "the workflow moves the management cluster to another cluster and back: the daemon cannot run on it meanwhile",
			Remedy: "run it with `scutectl run --local`",
		})
	case p.Management == nil || *p.Management == (access.ClusterRef{}):
		c.addProblem("management", "it is empty", "name the kubeconfig of the management cluster, as {kubeconfig: FILE}")
	}
}

func (c *checker) checkVersion(field, v, remedy string) {
	if v == "" {
		c.addProblem(field, "it is empty", remedy)
		return
	}
	if _, err := version.ParseSemantic(v); err != nil || !strings.HasPrefix(v, "v") {
		c.addProblem(field, v+" is not a version of Kubernetes", remedy)
	}
}

// checkDirection rejects downgrades and upgrades that skip a minor version.
func (c *checker) checkDirection() {
	from, unknown := version.ParseSemantic(c.params.Cluster.Version)
	to, wrong := version.ParseSemantic(c.params.Upgrade.Version)
	switch {
	case unknown != nil || wrong != nil:
	case to.LessThan(from):
		c.addProblem("upgrade.version", c.params.Upgrade.Version+" is older than cluster.version", "Kubernetes cannot be downgraded: set a newer version")
	case to.Major() != from.Major() || to.Minor() > from.Minor()+1:
		c.addProblem("upgrade.version", c.params.Upgrade.Version+" skips a minor version after "+c.params.Cluster.Version, "upgrade by one minor version at a time")
	}
}

// checkPause checks the inputs of kind Pause and adds the management cluster to them.
func (c *checker) checkPause() {
	if len(c.params.Pause) == 0 {
		return
	}
	with := map[string]any{}
	if err := json.Unmarshal(c.params.Pause, &with); err != nil {
		c.addProblem("pause", err.Error(), "set the inputs of kind Pause")
		return
	}
	for _, no := range []string{"cluster", "clusters", "all"} {
		if _, set := with[no]; set {
			c.addProblem("pause."+no, "the workflow changes the clusters itself", "remove it; kustomizations, helmReleases and eksa can be paused")
			return
		}
	}
	if m := c.params.Management; m != nil {
		with["cluster"] = m
	}
	data, _ := json.Marshal(with) // decoded JSON and a reference can always be encoded
	if kind, ok := c.deps.Kinds["Pause"]; ok {
		for _, p := range kind.Validate(data) {
			p.Field = paramsField + ".pause." + p.Field
			c.problems = append(c.problems, p)
		}
	}
	c.params.Pause = data
}

// checkReadable tries to read all files, templates, kubeconfigs and objects that the workflow will
// read. In the daemon, a read that failed but may succeed later results in an error rather than a
// problem.
func (c *checker) checkReadable(ctx context.Context, call *task.Call, made any) (problems []workflow.Problem, err error) {
	failed := func(field string, wrong error) {
		if wrong != nil && !c.deps.Clusters.IsLocal() && !task.IsFinal(wrong) {
			err = errors.Join(err, fmt.Errorf("%s.%s: %w", paramsField, field, wrong))
		} else if wrong != nil {
			message := wrong.Error()
			if rest, ok := strings.CutPrefix(message, "with.cluster"); ok { // the field's name in a task
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
	if p.Access != nil && c.name == WorkloadUpgrade { // a creation may still have to create this API server
		open("access", p.Access)
	}
	b := p.Bootstrap
	if c.usesPivot() && b != nil && b.Cluster != nil {
		open("bootstrap.cluster", b.Cluster)
	}
	if !c.deps.Clusters.IsLocal() {
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

// checkFile returns an error if the file cannot be read, and nil for an empty path.
func checkFile(path string) error {
	if path == "" {
		return nil
	}
	_, err := os.Stat(path)
	return err
}
