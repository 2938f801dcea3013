package management

import (
	"errors"
	"fmt"

	"scute.dev/kube/settled"
	"scute.dev/workflow/lifecycle/provider"
	"scute.dev/workflow/lifecycle/provider/cluster"
	"scute.dev/workflow/lifecycle/sequence"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/move"
)

// createBootstrap creates the bootstrap cluster of a workflow.
func (d *Deps) createBootstrap(c *sequence.Context) (provider.Access, error) {
	ref, err := d.Bootstrap.Create(c)
	return provider.Access{Cluster: &ref}, err
}

// deleteBootstrap deletes the bootstrap cluster if it does not manage the cluster any more. It keeps a bootstrap cluster that exists and does not
// respond, because the objects of the cluster could be lost with it.
func (d *Deps) deleteBootstrap(c *sequence.Context, on access.ClusterRef, spec provider.Cluster) error {
	if !d.Bootstrap.Temporary() {
		return d.Bootstrap.Delete(c)
	}
	exists, err := d.Bootstrap.Exists(c)
	if err != nil {
		return err
	}
	if exists {
		there, err := cluster.Exists(c, on, spec)
		switch {
		case errors.Is(err, settled.ErrVersion): // its components were removed, which requires that it has no objects
		case err != nil:
			return fmt.Errorf("the bootstrap cluster exists, but scute cannot read whether it still manages cluster %s/%s: start it again, or delete it "+
				"by hand if you do not need its objects: %w", spec.Namespace, spec.Name, err)
		case there:
			return task.Final(fmt.Errorf("the bootstrap cluster still manages cluster %s/%s: move it to another cluster first", spec.Namespace, spec.Name))
		}
	}
	return d.Bootstrap.Delete(c)
}

// undoBootstrap undoes createBootstrap. It makes the same check as deleteBootstrap, because the bootstrap cluster may have the only copy of the
// cluster after an operator has marked the move back as undone. A bootstrap cluster whose creation never finished has no copy.
func (d *Deps) undoBootstrap(c *sequence.Context, made *provider.Access, spec provider.Cluster) error {
	if made == nil || made.Cluster == nil {
		return d.Bootstrap.Delete(c)
	}
	return d.deleteBootstrap(c, *made.Cluster, spec)
}

// recreateBootstrap undoes deleteBootstrap, because the undo of earlier tasks needs the bootstrap cluster. It keeps a bootstrap cluster that exists,
// because it was not deleted and may still manage the cluster.
func (d *Deps) recreateBootstrap(c *sequence.Context, on access.ClusterRef, spec provider.Cluster, p provider.ComponentInstaller) error {
	if !d.Bootstrap.Temporary() {
		return nil
	}
	exists, err := d.Bootstrap.Exists(c)
	if err != nil {
		return err
	}
	if exists {
		if _, err := cluster.Exists(c, on, spec); err != nil && !errors.Is(err, settled.ErrVersion) {
			return fmt.Errorf("the bootstrap cluster exists, but does not respond: start it again, or delete it by hand if you do not need its objects: %w",
				err)
		}
	} else if on, err = d.Bootstrap.Create(c); err != nil {
		return err
	}
	return p.InstallComponents(c, on)
}

// moveWith are the inputs of the kind Move that the workflows use.
type moveWith struct {
	Clusters  []string          `json:"clusters"`
	Namespace string            `json:"namespace"`
	From      access.ClusterRef `json:"from,omitzero"`
	To        access.ClusterRef `json:"to"`
}

const (
	pivotPart    = "move"
	moveBackPart = "back"
)

// pivot moves the cluster's objects and waits until the cluster is available on the target.
func (d *Deps) pivot(c *sequence.Context, spec provider.Cluster, from, to access.ClusterRef) error {
	_, err := c.Perform(pivotPart, d.Move, moveWith{Clusters: []string{spec.Name}, Namespace: spec.Namespace, From: from, To: to})
	if err != nil {
		return err
	}
	return cluster.WaitAvailable(c, to, spec)
}

// undoPivot rolls back a move that is in progress, or moves the cluster back after a completed move. back reports whether it moved the cluster back.
func (d *Deps) undoPivot(c *sequence.Context, spec provider.Cluster, from, to access.ClusterRef) (back bool, err error) {
	if !c.Started(pivotPart) {
		return false, nil
	}
	with := moveWith{Clusters: []string{spec.Name}, Namespace: spec.Namespace, From: from, To: to}
	if err := c.Revert(pivotPart, d.Move, with); !errors.Is(err, move.ErrMoved) {
		return false, err
	}
	with.From, with.To = to, from
	if _, err := c.Perform(moveBackPart, d.Move, with); err != nil {
		return false, fmt.Errorf("moving the cluster back: %w", err)
	}
	return true, cluster.WaitAvailable(c, from, spec)
}
