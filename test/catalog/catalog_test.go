package catalog

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"sigs.k8s.io/yaml"

	"scute.dev/test/assets"
)

// TestChartListsEveryKind checks that the chart's value `providers` has all kinds of each provider, and is up to date.
func TestChartListsEveryKind(t *testing.T) {
	// Kinds whose absence users of a provider have reported, and the number of kinds in its release.
	least := map[string]struct {
		kinds int
		named []string
	}{
		"aws":       {24, []string{"nodeadmconfigs.bootstrap.cluster.x-k8s.io", "awsmanagedcontrolplanetemplates.controlplane.cluster.x-k8s.io", "rosacontrolplanes.controlplane.cluster.x-k8s.io", "rosaroleconfigs.infrastructure.cluster.x-k8s.io"}},
		"azure":     {19, []string{"azureasomanagedcontrolplanes.infrastructure.cluster.x-k8s.io", "azureclusteridentities.infrastructure.cluster.x-k8s.io", "azuremanagedmachinepooltemplates.infrastructure.cluster.x-k8s.io"}},
		"core":      {12, []string{"clusters.cluster.x-k8s.io", "machinedrainrules.cluster.x-k8s.io", "ipaddressclaims.ipam.cluster.x-k8s.io"}},
		"dev":       {12, nil},
		"gcp":       {13, []string{"gkeconfigs.bootstrap.cluster.x-k8s.io", "gcpmachinepools.infrastructure.cluster.x-k8s.io"}},
		"hetzner":   {11, nil},
		"incluster": {4, nil},
		"k0smotron": {14, []string{"clusters.k0smotron.io", "jointokenrequests.k0smotron.io"}},
		"kamaji":    {2, nil},
		"kubeadm":   {4, nil},
		"kubevirt":  {6, nil},
		"metal3":    {9, []string{"baremetalhosts.metal3.io", "hardwaredata.metal3.io", "ippools.ipam.metal3.io"}},
		"nutanix":   {8, []string{"nutanixvmantiaffinitypolicies.infrastructure.cluster.x-k8s.io"}},
		"openstack": {7, []string{"openstackclusteridentities.infrastructure.cluster.x-k8s.io"}},
		"rke2":      {4, nil},
		"talos":     {4, nil},
		"vsphere":   {13, []string{"providerserviceaccounts.vmware.infrastructure.cluster.x-k8s.io", "vsphereclusteridentities.infrastructure.cluster.x-k8s.io"}},
	}
	providers, err := Providers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	root, err := assets.Root()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(root, "charts", "scute", "values.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var values struct {
		Providers map[string][]struct {
			Group     string   `json:"group"`
			Resources []string `json:"resources"`
		} `json:"providers"`
	}
	if err := yaml.Unmarshal(text, &values); err != nil {
		t.Fatal(err)
	}
	known := make(map[string]bool)
	for _, p := range providers {
		known[p.Name] = true
		t.Run(p.Name, func(t *testing.T) {
			var listed []string
			for _, r := range values.Providers[p.Name] {
				for _, resource := range r.Resources {
					listed = append(listed, resource+"."+r.Group)
				}
			}
			want := slices.Clone(least[p.Name].named)
			for _, d := range p.Definitions {
				if d.Spec.Group != notMoved {
					want = append(want, d.Name)
				}
			}
			for _, name := range want {
				if !slices.Contains(listed, name) {
					t.Errorf("the chart does not list %s: run make generate", name)
				}
			}
			if len(listed) < least[p.Name].kinds {
				t.Errorf("the chart lists %d kinds, want at least %d", len(listed), least[p.Name].kinds)
			}
		})
	}
	for name := range least {
		if !known[name] {
			t.Errorf("the catalog has no provider %s", name)
		}
	}
	fresh, err := Rewrite(text, providers)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, fresh) {
		t.Error("charts/scute/values.yaml is stale: run make generate")
	}
}

// TestLabels checks that the labels are those of a real installation. The kinds of Cluster API's core have no contract
// labels.
func TestLabels(t *testing.T) {
	providers, err := Providers(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	const contract1, contract2, hierarchy = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2", "clusterctl.cluster.x-k8s.io/move-hierarchy"
	for name, want := range map[string][]string{
		"clusters.cluster.x-k8s.io":                                  nil,
		"kubeadmcontrolplanes.controlplane.cluster.x-k8s.io":         {contract1, contract2},
		"devmachines.infrastructure.cluster.x-k8s.io":                {contract1, contract2},
		"awsmachines.infrastructure.cluster.x-k8s.io":                {contract1},
		"awsclusterstaticidentities.infrastructure.cluster.x-k8s.io": {contract1, hierarchy},
		"gcpclusters.infrastructure.cluster.x-k8s.io":                {contract1},
		"vsphereclusteridentities.infrastructure.cluster.x-k8s.io":   {contract1, contract2, hierarchy},
		"vspheremachines.vmware.infrastructure.cluster.x-k8s.io":     {contract1, contract2},
		"globalinclusterippools.ipam.cluster.x-k8s.io":               {contract1},
	} {
		found := false
		for _, p := range providers {
			for _, d := range p.Definitions {
				if d.Name != name {
					continue
				}
				found = true
				for _, label := range []string{contract1, contract2, hierarchy} {
					if _, has := d.Labels[label]; has != slices.Contains(want, label) {
						t.Errorf("%s: has label %s: %v", name, label, has)
					}
				}
				if _, has := d.Labels["clusterctl.cluster.x-k8s.io"]; !has {
					t.Errorf("%s lacks clusterctl's label", name)
				}
			}
		}
		if !found {
			t.Errorf("the catalog lacks %s", name)
		}
	}
}
