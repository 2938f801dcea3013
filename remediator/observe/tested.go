package observe

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	clusterctlv1 "sigs.k8s.io/cluster-api/cmd/clusterctl/api/v1alpha3"
)

const (
	// testedFor is how long the answer to Tested is taken for the truth: an upgrade of providers takes longer.
	testedFor = time.Minute
	// kubeadmProvider is the name of the control plane provider in clusterctl's inventory.
	kubeadmProvider = "kubeadm"
)

// answered is what Tested found, and when.
type answered struct {
	sync.Mutex
	is    bool
	until time.Time
}

// TestedMinors are the minor versions of the kubeadm control plane provider whose inner bookkeeping was tested: the
// annotations remediation-in-progress and cloned-from-name. test/remediation drives each.
func TestedMinors() []string { return []string{"v1.14"} }

// Tested says that every kubeadm control plane provider in clusterctl's inventory is one of TestedMinors. Where there is
// no inventory, as providers were installed by other means, nothing is known: false.
func (o *Observer) Tested(ctx context.Context) bool {
	o.tested.Lock()
	defer o.tested.Unlock()
	if o.now().Before(o.tested.until) {
		return o.tested.is
	}
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inventory := &clusterctlv1.ProviderList{}
	err := refused(o.live.List(ctx, inventory))
	if err != nil {
		return false // not known now; asked again at the next look
	}
	o.tested.is, o.tested.until = testedVersions(inventory.Items), o.now().Add(testedFor)
	return o.tested.is
}

func testedVersions(inventory []clusterctlv1.Provider) bool {
	found := false
	for i := range inventory {
		p := &inventory[i]
		if p.ProviderName != kubeadmProvider || p.GetProviderType() != clusterctlv1.ControlPlaneProviderType {
			continue
		}
		parts := strings.SplitN(p.Version, ".", 3)
		if len(parts) != 3 || !slices.Contains(TestedMinors(), parts[0]+"."+parts[1]) {
			return false
		}
		found = true
	}
	return found
}
