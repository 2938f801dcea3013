package lifecycle

import (
	"encoding/json"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/version"

	"scute.dev/workflow"
	"scute.dev/workflow/task/access"
)

// checker collects the problems of the parameters of a workflow.
type checker struct {
	name     string
	params   *Params
	deps     *Deps
	problems []workflow.Problem
}

// bad adds a problem of a field, unless the field already has one.
func (c *checker) bad(field, message, remedy string) {
	if slices.ContainsFunc(c.problems, func(p workflow.Problem) bool { return p.Field == at+"."+field }) {
		return
	}
	c.problems = append(c.problems, workflow.Problem{Field: at + "." + field, Message: message, Remedy: remedy})
}

func (c *checker) management() bool { return strings.HasPrefix(c.name, "management-") }
func (c *checker) is(verb string) bool {
	return strings.HasSuffix(c.name, "-"+verb)
}

// pivots reports whether the workflow moves a management cluster to or from a bootstrap cluster.
func (c *checker) pivots() bool {
	inPlace := c.is("upgrade") && c.params.Upgrade.Pivot != nil && !*c.params.Upgrade.Pivot
	return c.management() && !inPlace
}

// check finds the problems that can be found without reading files or clusters.
func (c *checker) check() {
	c.cluster()
	if c.pivots() {
		c.sides()
	}
	if c.is("upgrade") {
		c.version("upgrade.version", c.params.Upgrade.Version, "set it to the version to upgrade to, for example v1.36.1")
		c.direction()
		c.pause()
	}
	if s := c.params.WriteConfig; s != nil {
		switch {
		case (s.File == "") == (s.ConfigMap == ""):
			c.bad("writeConfig", "it must have exactly one destination", "set either file or configMap")
		case s.File != "" && !c.deps.local():
			c.bad("writeConfig.file", "a file can only be named in a local run", "set configMap")
		}
	}
	if !c.deps.local() {
		for field, ref := range map[string]*access.ClusterRef{"management": c.params.Management, "access": c.params.Access} {
			if ref != nil && (ref.Kubeconfig != "" || ref.Context != "") {
				c.bad(field+".kubeconfig", "a file can only be named in a local run", "use kubeconfigSecretRef")
			}
		}
	}
}

func (c *checker) cluster() {
	p := &c.params.Cluster
	if p.Name == "" {
		c.bad("cluster.name", "it is empty", "name the cluster")
	} else if wrong := validation.IsDNS1123Subdomain(p.Name); len(wrong) > 0 {
		c.bad("cluster.name", wrong[0], "choose another name")
	}
	if p.Namespace == "" {
		c.bad("cluster.namespace", "it is empty, and the run has none", "name the namespace of the cluster")
	} else if wrong := validation.IsDNS1123Label(p.Namespace); len(wrong) > 0 {
		c.bad("cluster.namespace", wrong[0], "choose another namespace")
	}
	if n := p.ControlPlaneReplicas; n != nil && (*n < 1 || *n%2 == 0) {
		c.bad("cluster.controlPlaneReplicas", "etcd needs an odd number of members", "use 1, 3 or 5")
	}
	if n := p.WorkerReplicas; n != nil && *n < 0 {
		c.bad("cluster.workerReplicas", "it is negative", "use 0 or more")
	}
	if c.is("create") {
		c.version("cluster.version", p.Version, "set it to a version of Kubernetes, for example v1.36.0")
	}
	if own := c.deps.Namespace; !c.deps.local() && own != "" && p.Namespace != own {
		c.bad("cluster.namespace", "a run in the daemon acts in its own namespace, "+own, "remove it, or create the run in that namespace")
	}
}

// sides checks the clusters that a management cluster is moved between.
func (c *checker) sides() {
	p := c.params
	switch {
	case p.Bootstrap == nil:
		c.bad("bootstrap", "it is empty", "set bootstrap.cluster to a cluster that exists, or bootstrap.kind to create one")
	case c.deps.local() || p.Bootstrap.Cluster == nil:
	case *p.Bootstrap.Cluster != (access.ClusterRef{}):
		c.bad("bootstrap.cluster", "the daemon moves clusters away from its own cluster only", "use {}, or run it with `scutectl run --local`")
	}
	if c.is("create") {
		return
	}
	switch {
	case !c.deps.local():
		c.problems = append(c.problems, workflow.Problem{
			Field: "spec.workflow.name", Message: "the workflow moves the cluster away from itself, and back: the daemon must not run on it meanwhile",
			Remedy: "run it with `scutectl run --local`",
		})
	case p.Management == nil || *p.Management == (access.ClusterRef{}):
		c.bad("management", "it is empty", "name the kubeconfig of the management cluster, as {kubeconfig: FILE}")
	}
}

func (c *checker) version(field, v, remedy string) {
	if v == "" {
		c.bad(field, "it is empty", remedy)
		return
	}
	if _, err := version.ParseSemantic(v); err != nil || !strings.HasPrefix(v, "v") {
		c.bad(field, v+" is not a version of Kubernetes", remedy)
	}
}

// direction returns a problem for a downgrade, and for an upgrade that skips a minor version.
func (c *checker) direction() {
	from, err := version.ParseSemantic(c.params.Cluster.Version)
	if err != nil {
		return
	}
	to, err := version.ParseSemantic(c.params.Upgrade.Version)
	if err != nil {
		return
	}
	switch {
	case to.LessThan(from):
		c.bad("upgrade.version", c.params.Upgrade.Version+" is older than cluster.version", "Kubernetes is not downgraded: set a newer one")
	case to.Major() != from.Major() || to.Minor() > from.Minor()+1:
		c.bad("upgrade.version", c.params.Upgrade.Version+" skips a minor version after "+c.params.Cluster.Version, "upgrade by one minor version at a time")
	}
}

// pause checks the inputs of the kind Pause, and adds the management cluster to them.
func (c *checker) pause() {
	if len(c.params.Pause) == 0 {
		return
	}
	with := map[string]any{}
	if err := json.Unmarshal(c.params.Pause, &with); err != nil {
		c.bad("pause", err.Error(), "write the inputs of the kind Pause")
		return
	}
	for _, no := range []string{"cluster", "clusters", "all"} {
		if _, set := with[no]; set {
			c.bad("pause."+no, "the workflow itself works on the clusters", "remove it; kustomizations, helmReleases and eksa can be paused")
			return
		}
	}
	if m := c.params.Management; m != nil {
		with["cluster"] = m
	}
	data, err := json.Marshal(with)
	if err != nil {
		c.bad("pause", err.Error(), "write the inputs of the kind Pause")
		return
	}
	if kind, ok := c.deps.Kinds["Pause"]; ok {
		for _, p := range kind.Validate(data) {
			p.Field = at + ".pause." + p.Field
			c.problems = append(c.problems, p)
		}
	}
	c.params.Pause = data
}
