package bootstrap

import (
	"context"
	"fmt"
	"time"

	"k8s.io/client-go/discovery"

	"scute.dev/workflow"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task/access"
)

// Cluster is a temporary cluster.
type Cluster interface {
	// Create makes the cluster, or takes up the one that an earlier attempt of this run has made, and waits until its API
	// server is ready. The result refers to it; a kubeconfig is never in the log.
	Create(c *sequence.Context) (access.ClusterRef, error)
	// Delete removes what Create made; what was there before stays. A cluster that is gone is deleted.
	Delete(c *sequence.Context) error
	// Temporary says that Create makes it and Delete deletes it.
	Temporary() bool
	// Exists says whether the cluster is there, whether or not it answers.
	Exists(c *sequence.Context) (bool, error)
}

// Params say which. Exactly one of them is set.
type Params struct {
	// Cluster is there already, and is never deleted. In the daemon {} is its own cluster.
	Cluster *access.ClusterRef `json:"cluster,omitempty"`
	// Kind makes one in Docker, on the machine of a local run.
	Kind *Kind `json:"kind,omitempty"`
}

// New checks the parameters; problems name their field from field on. Kubeconfigs are written to folder.
func (p Params) New(field, folder string, local bool) (Cluster, []workflow.Problem) {
	switch {
	case (p.Cluster == nil) == (p.Kind == nil):
		return nil, []workflow.Problem{{
			Field: field, Message: "the bootstrap cluster has not exactly one origin",
			Remedy: "set bootstrap.cluster to one that is there, or bootstrap.kind to have one made",
		}}
	case p.Kind != nil && !local:
		return nil, []workflow.Problem{{
			Field: field + ".kind", Message: "only a local run can make one",
			Remedy: "run it with `scutectl run --local`, or name a cluster in bootstrap.cluster",
		}}
	case p.Kind != nil:
		k := *p.Kind
		k.folder = folder
		return &k, nil
	default:
		return existing{*p.Cluster}, nil
	}
}

// existing is somebody's cluster.
type existing struct{ ref access.ClusterRef }

// Create waits until the cluster answers.
func (e existing) Create(c *sequence.Context) (access.ClusterRef, error) {
	if err := c.Note("bootstrap", made{}, true); err != nil {
		return e.ref, err
	}
	return e.ref, answers(c, e.ref)
}

// Delete leaves it alone.
func (existing) Delete(*sequence.Context) error { return nil }

// Temporary is false: it stays.
func (existing) Temporary() bool { return false }

// Exists is true: nobody here deletes it.
func (existing) Exists(*sequence.Context) (bool, error) { return true, nil }

// made is the record of a bootstrap cluster.
type made struct {
	Name string `json:"name,omitempty"`
	// Whole: it has answered. Clusters may have been moved to it since.
	Whole bool `json:"whole,omitempty"`
}

// answerTimeout bounds the wait for an API server that should be there.
const answerTimeout = time.Minute

// answers waits until the API server does. Every user with any permission may ask for its version.
func answers(c *sequence.Context, ref access.ClusterRef) error {
	on, err := c.Open(ref)
	if err != nil {
		return fmt.Errorf("reaching the bootstrap cluster: %w", err)
	}
	ctx, cancel := context.WithTimeout(c, answerTimeout)
	defer cancel()
	versions, err := discovery.NewDiscoveryClientForConfig(on.Config)
	if err != nil {
		return fmt.Errorf("reaching the bootstrap cluster at %s: %w", on.Config.Host, err)
	}
	err = on.Kube.Do(ctx, "ask for its version", func(ctx context.Context) error {
		return versions.RESTClient().Get().AbsPath("/version").Do(ctx).Error()
	})
	if err != nil {
		return fmt.Errorf("reaching the bootstrap cluster at %s: %w", on.Config.Host, err)
	}
	return nil
}
