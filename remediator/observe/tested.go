package observe

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/kube"
	"scute.dev/remediator/ownerkind"
)

// testedTTL is how long the inventory is cached. It is shorter than an upgrade of a provider takes.
const testedTTL = time.Minute

type testedProviders struct {
	sync.Mutex
	inventory []clusterctlv1.Provider
	until     time.Time
}

// Tested reports whether all installed providers of an owner kind have a minor version with which
// scute was tested (Kind.Tested). It reads the inventories of clusterctl and of Cluster API
// Operator, and returns false if neither records a version.
func (o *Observer) Tested(ctx context.Context, kind ownerkind.Kind) bool {
	if kind.Provider == "" {
		return false
	}
	o.tested.Lock()
	defer o.tested.Unlock()
	if began := o.now(); !began.Before(o.tested.until) {
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		inventory, operated := &clusterctlv1.ProviderList{}, &unstructured.UnstructuredList{}
		operated.SetGroupVersionKind(kube.OperatorType(clusterctlv1.ControlPlaneProviderType).GVK())
		for _, list := range []client.ObjectList{inventory, operated} {
			if err := retryable(o.live.List(ctx, list)); err != nil {
				// Callers wait for the lock, so they must not wait for one slow list after another. A
				// fast failure is not kept: without the versions, another method may be chosen.
				now := o.now()
				o.tested.inventory, o.tested.until = nil, now.Add(now.Sub(began))
				return false
			}
		}
		for i := range operated.Items {
			p := kube.ProviderOf(&operated.Items[i])
			inventory.Items = append(inventory.Items, clusterctlv1.Provider{ProviderName: p.Name, Type: string(p.Type), Version: p.Version})
		}
		o.tested.inventory, o.tested.until = inventory.Items, o.now().Add(testedTTL)
	}
	return testedVersions(o.tested.inventory, kind)
}

func testedVersions(inventory []clusterctlv1.Provider, kind ownerkind.Kind) bool {
	found := false
	for i := range inventory {
		p := &inventory[i]
		if p.ProviderName != kind.Provider || p.GetProviderType() != clusterctlv1.ControlPlaneProviderType {
			continue
		}
		parts := strings.SplitN(p.Version, ".", 3)
		if len(parts) != 3 || !slices.Contains(kind.Tested, parts[0]+"."+parts[1]) {
			return false
		}
		found = true
	}
	return found
}
