package providers

import (
	"context"
	"fmt"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/internal/sleep"
	"scute.dev/kube"
	"scute.dev/kube/object"
	"scute.dev/workflow/task/access"
)

// undoUpgrades restores the replicas of Deployments that an upgrade has scaled down. It returns the
// upgrades that cannot be undone, because they have already changed a version or removed a
// Deployment.
func (a *providerManager) undoUpgrades(ctx context.Context, record changeRecord, there map[string]provider) (tooFar []string, err error) {
	before := make(map[string]provider)
	for _, p := range record.Before {
		before[p.label()] = p
	}
	for _, p := range record.Upgrade {
		was, have := before[p.label()], there[p.label()]
		if have.Version != was.Version {
			tooFar = append(tooFar, fmt.Sprintf("%s was upgraded from %s to %s", p.label(), was.Version, have.Version))
			continue
		}
		list, err := a.deployments(ctx, p.provider)
		if err != nil {
			return nil, err
		}
		found := 0
		for i := range list {
			d := &list[i]
			replicas, known := p.Replicas[d.Namespace+"/"+d.Name]
			if !known {
				continue
			}
			found++
			if d.Spec.Replicas != nil && *d.Spec.Replicas == replicas {
				continue
			}
			body := fmt.Appendf(nil, `{"metadata":{"uid":%q},"spec":{"replicas":%d}}`, d.UID, replicas)
			err := a.cluster.Kube.Do(ctx, "scale Deployment "+d.Name, func(ctx context.Context) error {
				return a.cluster.Client.Patch(ctx, d, client.RawPatch(types.MergePatchType, body), client.FieldOwner(kube.FieldManager))
			})
			if err != nil {
				return nil, err
			}
		}
		if found < len(p.Replicas) {
			tooFar = append(tooFar, fmt.Sprintf("the upgrade of %s from %s to %s has started", p.label(), was.Version, p.Version))
		}
	}
	return tooFar, nil
}

// ownInstalls returns the installs without the providers that another client has installed since
// then. It keeps a provider that has no inventory entry, because clusterctl writes the entry last
// and may have been interrupted.
func (a *providerManager) ownInstalls(installs []installRecord, there map[string]provider) []installRecord {
	return slices.DeleteFunc(slices.Clone(installs), func(p installRecord) bool {
		entry, ok := there[p.label()]
		if !ok || strings.HasPrefix(entry.stepKey, a.call.RunKey()+"/") {
			return false
		}
		a.call.Progress(fmt.Sprintf("keeping %s: another client installed it", entry))
		return true
	})
}

// remove deletes the recorded providers in reverse order, except objects that existed before them.
func (a *providerManager) remove(ctx context.Context, installs []installRecord, there []provider) error {
	for _, p := range slices.Backward(installs) {
		shared := slices.ContainsFunc(there, func(q provider) bool {
			return q.Namespace == p.Namespace && !slices.ContainsFunc(installs, func(r installRecord) bool { return r.label() == q.label() })
		})
		if err := a.call.ReacquireSlot(ctx); err != nil { // the removal of the previous provider may have yielded the slot
			return err
		}
		if err := a.removeOne(ctx, p, shared); err != nil {
			return fmt.Errorf("removing %s: %w", p, err)
		}
	}
	return nil
}

func (a *providerManager) removeOne(ctx context.Context, p installRecord, shared bool) error {
	pace := access.NewBackoff()
	for first := true; ; first = false {
		all, err := a.components(ctx, p.provider)
		if err != nil {
			return err
		}
		left := slices.DeleteFunc(all, func(u unstructured.Unstructured) bool {
			ref := object.Observe(&u).Ref
			return slices.Contains(p.Keep, ref) || ref.Kind == "Namespace" && (shared || ref.Name != p.Namespace)
		})
		if len(left) == 0 {
			return nil
		}
		slices.SortStableFunc(left, func(x, y unstructured.Unstructured) int { return removeRank(x) - removeRank(y) })
		if first {
			a.call.Progress(fmt.Sprintf("removing %s: %d objects", p, len(left)))
			for i := range left { // deleting a definition or a namespace would also delete its objects or clusters
				if err := a.cluster.CheckUnused(ctx, &left[i]); err != nil {
					return err
				}
			}
		}
		for i := range left {
			if u := &left[i]; u.GetDeletionTimestamp() == nil {
				if err := a.cluster.Delete(ctx, access.RefOf(u), u.GetUID(), metav1.DeletePropagationBackground); err != nil {
					return err
				}
			}
		}
		a.call.YieldSlot()
		if err := sleep.For(ctx, pace.NextBackOff()); err != nil {
			return fmt.Errorf("%d objects still exist, for example %s: %w", len(left), object.Observe(&left[0]).Ref, err)
		}
	}
}

// removeRank returns the rank of an object in the order of removal: controllers and webhooks first,
// and the namespace last.
func removeRank(u unstructured.Unstructured) int {
	switch u.GetKind() {
	case "Deployment", "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration":
		return 0
	case "CustomResourceDefinition":
		return 2
	case "Provider":
		return 3 // the inventory entry, which is kept until the components are gone
	case "Namespace":
		return 4
	default:
		return 1
	}
}
