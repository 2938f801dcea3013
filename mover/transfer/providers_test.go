package transfer

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// operated adds a provider that the Cluster API Operator has installed.
func (f *fakeAPI) operated(kind, namespace, name, version string) {
	f.operator = true
	f.put(object.Ref{Group: "operator.cluster.x-k8s.io", Kind: kind, Namespace: namespace, Name: name}, obj{"status": obj{"installedVersion": version}})
}

func (f *fakeAPI) installed(kind, name, version string) {
	f.identities = true
	f.put(object.Ref{Group: provider().group, Kind: "Provider", Namespace: "capi-system", Name: kind + name}, obj{"type": kind, "providerName": name, "version": version})
}

// TestProvidersAreComparedWhereBothSidesRecordThem checks that versions recorded by clusterctl or by the Cluster API
// Operator are compared. Missing records are one warning rather than an error, because the served kinds are compared
// too.
func TestProvidersAreComparedWhereBothSidesRecordThem(t *testing.T) {
	const infra, none = "InfrastructureProvider", "the versions of the providers were not compared: "
	for name, c := range map[string]struct {
		source, target func(*fakeAPI)
		severity       mover.Severity
		says           string // "" is none
	}{
		"neither": {says: none + "the source records none"},
		"source":  {source: func(f *fakeAPI) { f.installed(infra, "aws", "v2.13.0") }, says: none + "the target records none"},
		"target":  {target: func(f *fakeAPI) { f.installed(infra, "aws", "v2.13.0") }, says: none + "the source records none"},
		"both":    {source: func(f *fakeAPI) { f.installed(infra, "aws", "v2.12.0") }, target: func(f *fakeAPI) { f.installed(infra, "aws", "v2.13.0") }},
		"older":   {source: func(f *fakeAPI) { f.installed(infra, "aws", "v2.13.0") }, target: func(f *fakeAPI) { f.installed(infra, "aws", "v2.12.9") }, severity: mover.Error, says: "the target has v2.12.9, the source v2.13.0"},
		"clusterctl and operator": {
			source: func(f *fakeAPI) { f.installed(infra, "aws", "v2.13.0") }, target: func(f *fakeAPI) { f.operated(infra, "capa", "aws", "v2.13.0") },
		},
		"older by the operator": {
			source: func(f *fakeAPI) { f.operated(infra, "capa", "aws", "v2.13.0") }, target: func(f *fakeAPI) { f.operated(infra, "capa", "aws", "v2.12.0") },
			severity: mover.Error, says: "the target has v2.12.0, the source v2.13.0",
		},
		"another one": {
			source: func(f *fakeAPI) {
				f.installed(infra, "aws", "v2.13.0")
				f.operated("CoreProvider", "capi", "cluster-api", "v1.14.2")
			},
			target: func(f *fakeAPI) { f.operated("CoreProvider", "capi", "cluster-api", "v1.14.2") },
			says:   "the versions of these providers of the source were not compared, because the target does not record them: InfrastructureProvider aws v2.13.0",
		},
		"not installed yet": {
			source: func(f *fakeAPI) { f.operated(infra, "capa", "aws", "v2.13.0") }, target: func(f *fakeAPI) { f.operated(infra, "capa", "aws", "") },
			says: none + "the target records none",
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			for api, prepare := range map[*fakeAPI]func(*fakeAPI){f.src: c.source, f.dst: c.target} {
				if prepare != nil {
					prepare(api)
				}
			}
			var found []mover.Finding
			for _, one := range f.findings(t) {
				if strings.Contains(one.Field, "rovider") {
					found = append(found, one)
				}
			}
			severity := mover.Warning
			if c.severity != "" {
				severity = c.severity
			}
			switch {
			case c.says == "":
				if len(found) > 0 {
					t.Errorf("findings = %+v, want none", found)
				}
			case len(found) != 1 || found[0].Severity != severity || !strings.HasPrefix(found[0].Message, c.says) || found[0].Remedy == "":
				t.Errorf("findings = %+v, want one %s %q", found, severity, c.says)
			}
		})
	}
}

// TestCredentialsAreFoundWithoutAnInventory checks that Secrets owned by identities move, or are reported as left,
// however the providers were installed.
func TestCredentialsAreFoundWithoutAnInventory(t *testing.T) {
	for name, prepare := range map[string]func(*fakeAPI){
		"no record":          func(*fakeAPI) {},
		"the operator":       func(f *fakeAPI) { f.operated("InfrastructureProvider", "capd-system", "dev", "v1.14.2") },
		"a record of others": func(f *fakeAPI) { f.installed("CoreProvider", "cluster-api", "v1.14.2") },
	} {
		for _, shared := range []bool{true, false} {
			t.Run(name, func(t *testing.T) {
				f := moved(t, mover.Claimed{})
				credentials := withIdentity(f.src)
				f.src.drop(object.Ref{Group: provider().group, Kind: "Provider", Namespace: "capd-system", Name: "dev"})
				f.src.put(object.Ref{Kind: "Secret", Namespace: "elsewhere", Name: "a-kubeconfig"}, nil)
				prepare(f.src)
				f.transfer.Shares = func(string) bool { return shared }
				if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
					t.Fatal(err)
				}
				members, w, err := f.transfer.members(t.Context(), f.state.Spec, everyKind)
				if err != nil {
					t.Fatal(err)
				}
				moves := slices.ContainsFunc(members.Objects, func(m mover.Member) bool { return m.Ref == credentials })
				left := slices.ContainsFunc(members.Excluded, func(l mover.ObjectReason) bool { return l.Ref == credentials })
				if moves != shared || left == shared {
					t.Errorf("moves %v, reported as left %v", moves, left)
				}
				if slices.ContainsFunc(w.objects, func(o object.Observed) bool { return o.Ref.Namespace == "elsewhere" }) {
					t.Error("a Secret that no identity owns was read")
				}
			})
		}
	}
}

// TestKindsThatMayNotBeListedAreGrantedByOneCommand checks that one finding has a command that grants all missing
// permissions.
func TestKindsThatMayNotBeListedAreGrantedByOneCommand(t *testing.T) {
	f := moved(t, mover.Claimed{})
	f.src.deniedPlural = "infrastructure.cluster.x-k8s.io"
	f.src.deny = func(r *http.Request) string {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/devmachines") {
			return `devmachines.infrastructure.cluster.x-k8s.io is forbidden: User "scute" cannot list resource "devmachines"`
		}
		return ""
	}
	var found []mover.Finding
	for _, one := range f.findings(t) {
		if one.Severity == mover.Error {
			found = append(found, one)
		}
	}
	const command = "kubectl create clusterrole scute-devmachines-infrastructure-cluster-x-k8s-io --verb=get,list,patch,delete " +
		"--resource=devmachines.infrastructure.cluster.x-k8s.io && kubectl label clusterrole scute-devmachines-infrastructure-cluster-x-k8s-io " +
		"scute.dev/aggregate-to-daemon=true"
	if len(found) != 1 || !strings.Contains(found[0].Message, "may not list DevMachine.infrastructure.cluster.x-k8s.io") || !strings.Contains(found[0].Remedy, command) {
		t.Errorf("findings = %+v, want one with the command", found)
	}
}

// TestWhatTheTargetLacks checks the findings and remedies for kinds, versions and permissions that the target lacks.
func TestWhatTheTargetLacks(t *testing.T) {
	template := func(f *fakeAPI, version string) {
		k := configTemplate()
		k.version = version
		f.extraKinds = append(f.extraKinds, k)
		f.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: k.plural + "." + k.group}, obj{"metadata": obj{"labels": obj{"clusterctl.cluster.x-k8s.io": ""}}})
	}
	for name, c := range map[string]struct {
		prepare      func(*fakes)
		severity     mover.Severity
		says, remedy string
	}{
		"a kind": {func(f *fakes) { withIdentity(f.src) }, mover.Error, "the target does not serve this kind", "install its provider"},
		"a version": {func(f *fakes) {
			template(f.src, "v1beta2")
			template(f.dst, "v1beta1")
			f.src.put(object.Ref{Group: configTemplate().group, Kind: configTemplate().kind, Namespace: "fleet", Name: "c"}, ownedBy(f.cluster, f.src.get(f.cluster).GetUID()))
		}, mover.Error, "the source uses version v1beta2; the target serves only [v1beta1]", "upgrade the provider"},
		"Clusters": {func(f *fakes) {
			f.dst.drop(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "clusters.cluster.x-k8s.io"})
		}, mover.Error, "it does not serve Clusters", "install Cluster API"},
		"permission to list providers": {func(f *fakes) {
			f.dst.deny = func(r *http.Request) string {
				if strings.HasSuffix(r.URL.Path, "/providers") {
					return `User "scute" cannot list resource "providers"`
				}
				return ""
			}
		}, mover.Warning, "the versions of the providers could not be compared", "grant list on providers.clusterctl.cluster.x-k8s.io"},
		"permission to name owners": {func(f *fakes) {
			f.dst.deny = func(r *http.Request) string {
				if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, "/machines") { // from OwnerReferencesPermissionEnforcement
					return `machines "a-1" is forbidden: cannot set blockOwnerDeletion if an ownerReference refers to a resource you can't set finalizers on: , <nil>`
				}
				return ""
			}
		}, mover.Error, "the target would reject it", "apply the ClusterRole scute-move-target"},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			c.prepare(f)
			found := f.findings(t)
			if !slices.ContainsFunc(found, func(one mover.Finding) bool {
				return one.Severity == c.severity && strings.Contains(one.Message, c.says) && strings.Contains(one.Remedy, c.remedy)
			}) {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestContractsOfTheTarget checks that a target with only older contracts is refused. A target with a newer contract,
// or without labels, is accepted.
func TestContractsOfTheTarget(t *testing.T) {
	const v1, v2 = "cluster.x-k8s.io/v1beta1", "cluster.x-k8s.io/v1beta2"
	for name, c := range map[string]struct {
		source, target []string
		refused        bool
	}{
		"none": {}, "same": {[]string{v1}, []string{v1}, false}, "newer": {[]string{v1}, []string{v2}, false}, "both": {[]string{v1, v2}, []string{v2}, false},
		"no label on the target": {[]string{v2}, nil, false}, "no label at the source": {nil, []string{v1}, false}, "older": {[]string{v1, v2}, []string{v1}, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			for api, labels := range map[*fakeAPI][]string{f.src: c.source, f.dst: c.target} {
				all := obj{"clusterctl.cluster.x-k8s.io": ""}
				for _, l := range labels {
					all[l] = "v1beta2"
				}
				for _, k := range fakeKinds() {
					if strings.HasSuffix(k.group, object.CoreGroup) {
						api.merge(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: k.plural + "." + k.group}, obj{"metadata": obj{"labels": maps.Clone(all)}})
					}
				}
			}
			refused := slices.ContainsFunc(f.findings(t), func(one mover.Finding) bool { return strings.Contains(one.Message, "contract") })
			if refused != c.refused {
				t.Errorf("refused = %v", refused)
			}
		})
	}
}

// findings runs a preflight and returns its findings.
func (f *fakes) findings(t *testing.T) []mover.Finding {
	t.Helper()
	outcome, err := f.transfer.preflight(t.Context(), f.state)
	if err != nil {
		t.Fatal(err)
	}
	done, ok := outcome.(mover.PreflightDone)
	if !ok {
		t.Fatalf("outcome = %T, want PreflightDone", outcome)
	}
	return done.Findings
}
