package remediation

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
	"scute.dev/cmd/ctl/cli"
	"scute.dev/cmd/ctl/kit"
)

// PausePolicy adds a pause request to a RepairPolicy. It fails if the policy has changed since the
// user saw it. A policy with a pause request starts no remediation.
func PausePolicy(ctx context.Context, k *kit.Kit, seen *kit.Seen, name, reason string) error {
	return changePolicy(ctx, k, seen, name, func(p *v1alpha1.RepairPolicy) (string, error) {
		if slices.Contains(p.Spec.PauseRequests, reason) {
			return "", fmt.Errorf("%w: RepairPolicy %s already has this pause request", kit.ErrChanged, name)
		}
		p.Spec.PauseRequests = append(p.Spec.PauseRequests, reason)
		return "it starts no remediation until this pause request is removed", nil
	})
}

// ResumePolicy removes the pause request with the index place. It fails if the policy has changed
// since the user saw it, because another request may then have this index.
func ResumePolicy(ctx context.Context, k *kit.Kit, seen *kit.Seen, name string, place int) error {
	return changePolicy(ctx, k, seen, name, func(p *v1alpha1.RepairPolicy) (string, error) {
		if place < 0 || place >= len(p.Spec.PauseRequests) {
			return "", cli.Usagef("the choice is %d: RepairPolicy %s has %d pause requests, counted from 0", place, name, len(p.Spec.PauseRequests))
		}
		p.Spec.PauseRequests = slices.Delete(p.Spec.PauseRequests, place, place+1)
		if n := len(p.Spec.PauseRequests); n > 0 {
			return fmt.Sprintf("the pause request is removed; %d more keep it from starting remediations", n), nil
		}
		return "the pause request is removed: it may start remediations again", nil
	})
}

func changePolicy(ctx context.Context, k *kit.Kit, seen *kit.Seen, name string, change func(*v1alpha1.RepairPolicy) (string, error)) error {
	if seen == nil {
		return cli.Usagef("the RepairPolicy must have been read before it is changed")
	}
	cluster, err := k.Flags.Cluster()
	if err != nil {
		return err
	}
	p := &v1alpha1.RepairPolicy{}
	if err := cluster.Client.Get(ctx, client.ObjectKey{Namespace: cluster.Namespace, Name: name}, p); err != nil {
		return cluster.Explain(err)
	}
	if err := seen.Check(p, ""); err != nil {
		return err
	}
	before := p.DeepCopy()
	said, err := change(p)
	if err != nil {
		return err
	}
	if err := cluster.Client.Patch(ctx, p, seen.Patch(before)); err != nil {
		return fmt.Errorf("writing the spec of RepairPolicy %s/%s: %w", p.Namespace, p.Name, cluster.Explain(err))
	}
	return k.Env.Linef("RepairPolicy %s/%s: %s", p.Namespace, p.Name, said)
}
