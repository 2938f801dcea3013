package object_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/yaml"

	"scute.dev/kube/object"
)

func parse(t testing.TB, text string) *unstructured.Unstructured {
	t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(text), &u.Object); err != nil {
		t.Fatal(err)
	}
	return u
}

func TestRefAsText(t *testing.T) {
	name := rapid.StringMatching(`[a-z0-9]([-a-z0-9.]{0,20}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		r := object.Ref{
			Kind: rapid.StringMatching(`[A-Z][A-Za-z]{0,10}`).Draw(t, "kind"),
			Name: name.Draw(t, "name"),
		}
		if rapid.Bool().Draw(t, "grouped") {
			r.Group = name.Draw(t, "group")
		}
		if rapid.Bool().Draw(t, "namespaced") {
			r.Namespace = rapid.StringMatching(`[a-z][-a-z0-9]{0,10}`).Draw(t, "namespace")
		}
		// As a map key, as in events.
		raw, err := json.Marshal(map[object.Ref]bool{r: true})
		if err != nil {
			t.Fatal(err)
		}
		var back map[object.Ref]bool
		if err := json.Unmarshal(raw, &back); err != nil || !back[r] {
			t.Fatalf("%s decodes to %v (error %v)", raw, back, err)
		}
		if object.Compare(r, r) != 0 {
			t.Fatal("Compare(r, r) != 0")
		}
	})
	for _, wrong := range []string{"", "Machine", "Machine.x/fleet", "/fleet/a", "Machine.x/fleet/"} {
		var r object.Ref
		if err := r.UnmarshalText([]byte(wrong)); err == nil {
			t.Errorf("UnmarshalText(%q) = %+v, want an error", wrong, r)
		}
	}
}

func TestRefForPeople(t *testing.T) {
	for want, r := range map[string]object.Ref{
		"Machine.cluster.x-k8s.io fleet/a": {Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: "a"},
		"Secret fleet/a":                   {Kind: "Secret", Namespace: "fleet", Name: "a"},
		"Identity.x.io global":             {Group: "x.io", Kind: "Identity", Name: "global"},
	} {
		if got := r.String(); got != want {
			t.Errorf("String = %q, want %q", got, want)
		}
	}
	refs := []object.Ref{{Group: "b", Kind: "A"}, {Group: "a", Kind: "B", Name: "b"}, {Group: "a", Kind: "B", Name: "a"}, {Group: "a", Kind: "A", Namespace: "z"}}
	slices.SortFunc(refs, object.Compare)
	if diff := cmp.Diff([]object.Ref{{Group: "a", Kind: "A", Namespace: "z"}, {Group: "a", Kind: "B", Name: "a"}, {Group: "a", Kind: "B", Name: "b"}, {Group: "b", Kind: "A"}}, refs); diff != "" {
		t.Error(diff)
	}
}

func TestObserve(t *testing.T) {
	yes := true
	got := object.Observe(parse(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Cluster
metadata:
  name: a
  namespace: fleet
  uid: u
  resourceVersion: "7"
  deletionTimestamp: "2026-05-01T12:00:00Z"
  finalizers: [f, g]
  labels: {cluster.x-k8s.io/cluster-name: a, clusterctl.cluster.x-k8s.io/move: "", clusterctl.cluster.x-k8s.io/move-hierarchy: ""}
  annotations:
    cluster.x-k8s.io/paused: ""
    clusterctl.cluster.x-k8s.io/block-move: "true"
    controlplane.cluster.x-k8s.io/remediation-in-progress: "{}"
    scute.dev/move: fleet/go/1
    scute.dev/pause: fleet/run/1/hold
    scute.dev/pause.1a2b: fleet/maintenance
    scute.dev/paused-before: "true"
  ownerReferences: [{apiVersion: x.io/v1, kind: Fleet, name: f, uid: o, controller: true}]
spec: {paused: true, topology: {classRef: {name: base}}}
status:
  initialization: {infrastructureProvisioned: true, controlPlaneInitialized: true}
  conditions:
  - {type: Paused, status: "True", reason: Paused, message: "Cluster spec.paused is set to true"}
  - {type: TopologyReconciled, status: "False", reason: Paused}
  - {type: ControlPlaneInitialized, status: "True"}
`))
	want := object.Observed{
		Ref: object.Ref{Group: object.CoreGroup, Kind: "Cluster", Namespace: "fleet", Name: "a"}, Version: "v1beta2", UID: "u", ResourceVersion: "7",
		Owners:      []object.Owner{{Ref: object.Ref{Group: "x.io", Kind: "Fleet", Namespace: "fleet", Name: "f"}, Version: "v1", UID: "o", Controller: &yes}},
		ClusterName: "a", Deleting: true, Finalizers: 2, Movable: true, Hierarchy: true, BlockMove: true, PausedByUser: true, Remediating: true, MoveID: "fleet/go/1",
		PauseHolders: map[string]string{object.PauseAnnotation: "fleet/run/1/hold", object.PausePrefix + "1a2b": "fleet/maintenance"},
		References:   []object.Reference{{Field: "spec.topology.classRef", Ref: object.Ref{Namespace: "fleet", Name: "base"}}},
		Paused:       object.True, PausedMessage: "Cluster spec.paused is set to true", TopologyPaused: object.True,
		Cluster: &object.ClusterFacts{Paused: true, ClassName: "base", ClassNamespace: "fleet", InfrastructureReady: true, ControlPlaneInitialized: true},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("Observe (-want +got):\n%s", diff)
	}

	machine := object.Observe(parse(t, `
apiVersion: cluster.x-k8s.io/v1beta2
kind: Machine
metadata:
  name: a-1
  annotations:
    cluster.x-k8s.io/delete-machine: scute.dev
    scute.dev/unhealthy: '{"state":"Scheduled","since":"2026-01-01T00:00:00Z"}'
status:
  nodeRef: {name: node-1}
  conditions: [{type: OwnerRemediated, status: "False"}]
`))
	if diff := cmp.Diff(&object.MachineFacts{HasNode: true, OwnerRemediated: object.False, MarkedForDeletion: true, ReplacementScheduled: true}, machine.Machine); diff != "" {
		t.Error(diff)
	}
	for text, want := range map[string][2]bool{
		"baremetalhost.metal3.io/paused: metal3.io/capm3": {true, false},
		"scute.dev/addresses-reserved: ''":                {false, true},
		"example.com/paused: ''":                          {false, false},
	} {
		o := object.Observe(parse(t, "apiVersion: x.io/v1\nkind: Thing\nmetadata:\n  name: a\n  annotations: {"+text+"}"))
		if got := [2]bool{o.HostPaused, o.Reserved}; got != want {
			t.Errorf("annotation %s: host paused and reserved = %v", text, got)
		}
	}
	if machine.Cluster != nil || machine.TopologyPaused != object.Absent || machine.Paused != object.Absent {
		t.Errorf("unexpected facts: %+v", machine)
	}
}

// TestObserveTheConsumerOfAHost checks that the consumer of a host is read from the spec, for any provider, or from the
// status of a machine of a k0smotron pool.
func TestObserveTheConsumerOfAHost(t *testing.T) {
	const infra = "infrastructure.cluster.x-k8s.io"
	for text, want := range map[string]*object.Ref{
		"metal3.io/v1alpha1, kind: BareMetalHost, spec: {consumerRef: {apiVersion: metal3.io/v1alpha1, kind: HostClaim, name: c}}":      {Group: "metal3.io", Kind: "HostClaim", Namespace: "fleet", Name: "c"},
		infra + "/v1beta1, kind: PhysicalHost, spec: {consumerRef: {apiVersion: " + infra + "/v1beta1, kind: Beskar7Machine, name: m}}": {Group: infra, Kind: "Beskar7Machine", Namespace: "fleet", Name: "m"},
		infra + "/v1beta1, kind: PooledRemoteMachine, status: {machineRef: {name: m}}":                                                  {Group: infra, Kind: "RemoteMachine", Namespace: "fleet", Name: "m"},
		infra + "/v1beta1, kind: PooledRemoteMachine, status: {machineRef: {name: ''}}":                                                 nil,
		infra + "/v1beta1, kind: PhysicalHost, spec: {}":                                                                                nil,
	} {
		if diff := cmp.Diff(want, object.Observe(parse(t, "{apiVersion: "+text+", metadata: {name: h, namespace: fleet}}")).Consumer); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

// TestObserveALocalVirtualMachine checks that the virtual machine of a KubevirtMachine is local once it exists, unless
// the machine refers to another cluster.
func TestObserveALocalVirtualMachine(t *testing.T) {
	for spec, want := range map[string]bool{
		"{}": false, "{providerID: 'kubevirt://a'}": true, "{providerID: 'kubevirt://a', infraClusterSecretRef: {name: k}}": false,
	} {
		o := object.Observe(parse(t, "{apiVersion: infrastructure.cluster.x-k8s.io/v1alpha1, kind: KubevirtMachine, metadata: {name: a, namespace: fleet}, spec: "+spec+"}"))
		if o.Local != want {
			t.Errorf("spec %s: Local = %v, want %v", spec, o.Local, want)
		}
	}
}

func TestCondition(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want object.ConditionStatus
	}{
		"none":                         {"{}", object.Absent},
		"of this contract":             {"status: {conditions: [{type: Other, status: x}, {type: Paused, status: 'True'}]}", object.True},
		"retained by the older":        {"status: {v1beta2: {conditions: [{type: Paused, status: 'False'}]}}", object.False},
		"both: the newer one counts":   {"status: {v1beta2: {conditions: [{type: Paused, status: 'False'}]}, conditions: [{type: Paused, status: 'True'}]}", object.False},
		"the deprecated are no signal": {"status: {deprecated: {v1beta1: {conditions: [{type: Paused, status: 'True'}]}}}", object.Absent},
		"misshapen":                    {"status: {conditions: [7, {type: Paused, status: 1}]}", object.Absent},
		"not a list":                   {"status: {conditions: {Paused: true}}", object.Absent},
		"no object":                    {"status: nonsense", object.Absent},
	} {
		t.Run(name, func(t *testing.T) {
			if got, _, _ := object.Condition(parse(t, c.text), "Paused"); got != c.want {
				t.Errorf("Condition = %q, want %q", got, c.want)
			}
			object.Observe(parse(t, c.text)) // must accept any content
		})
	}
}

func TestObserveAClusterOfAnOlderVersion(t *testing.T) {
	o := object.Observe(parse(t, `
apiVersion: cluster.x-k8s.io/v1beta1
kind: Cluster
metadata: {name: old, namespace: fleet}
spec: {topology: {class: base}}
status:
  infrastructureReady: true
  conditions: [{type: ControlPlaneInitialized, status: "True"}]
`))
	want := &object.ClusterFacts{ClassName: "base", ClassNamespace: "fleet", InfrastructureReady: true, ControlPlaneInitialized: true}
	if diff := cmp.Diff(want, o.Cluster); diff != "" {
		t.Error(diff)
	}
}

// TestObserveWhetherAControlPlaneIsInitialized checks that the control plane object must report that it is initialized,
// as clusterctl requires. For a Cluster without such an object, whose machines are its control plane, the condition of
// the Cluster counts.
func TestObserveWhetherAControlPlaneIsInitialized(t *testing.T) {
	const ref, yes, no = "spec: {controlPlaneRef: {name: cp}}", `conditions: [{type: ControlPlaneInitialized, status: "True"}]`, `conditions: [{type: ControlPlaneInitialized, status: "False"}]`
	for text, want := range map[string]bool{
		"status: {}":                    false,
		"status: {" + no + "}":          false,
		"status: {" + yes + "}":         true,
		ref + "\nstatus: {" + yes + "}": false,
		ref + "\nstatus: {" + yes + ", initialization: {controlPlaneInitialized: true}}": true,
		ref + "\nstatus: {" + yes + ", controlPlaneReady: true}":                         true,
		ref + "\nstatus: {" + no + ", initialization: {controlPlaneInitialized: true}}":  false,
	} {
		o := object.Observe(parse(t, "apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\n"+text))
		if got := o.Cluster.ControlPlaneInitialized; got != want {
			t.Errorf("%s: ControlPlaneInitialized = %v, want %v", text, got, want)
		}
	}
}

func TestObserveABinding(t *testing.T) {
	const binding = "apiVersion: addons.cluster.x-k8s.io/v1beta2\nkind: ClusterResourceSetBinding\nmetadata: {name: b}\n"
	const release = "apiVersion: addons.cluster.x-k8s.io/v1alpha1\nkind: HelmReleaseProxy\nmetadata: {name: b, namespace: fleet}\n"
	for text, want := range map[string]string{
		release: "", release + "spec: {clusterRef: {name: a, namespace: fleet}}": "a", release + "spec: {clusterRef: {name: a, namespace: other}}": "", binding: "b", binding + "spec: {clusterName: a}": "a", "kind: Secret\nspec: {clusterName: a}": "",
	} {
		if got := object.Observe(parse(t, text)).BoundCluster; got != want {
			t.Errorf("%s: Binds = %q, want %q", text, got, want)
		}
	}
}

// TestObserveReferences checks which fields count as references. The own value of a Secret never does, in any field.
func TestObserveReferences(t *testing.T) {
	for spec, want := range map[string]string{
		"{identityRef: {name: x}}":                                                               "spec.identityRef //fleet/x credential",
		"{identityRef: {kind: Secret, name: x}}":                                                 "spec.identityRef /Secret/fleet/x credential",
		"{identityRef: {type: Secret, name: x}}":                                                 "spec.identityRef /Secret/fleet/x credential",
		"{identityRef: {kind: CloudIdentity, name: x, namespace: ns}}":                           "spec.identityRef /CloudIdentity/ns/x",
		"{ref: {apiVersion: v1, kind: ConfigMap, name: x}}":                                      "spec.ref /ConfigMap/fleet/x",
		"{ref: {apiVersion: a.io/v1, kind: Thing, name: x}}":                                     "spec.ref a.io/Thing/fleet/x",
		"{ref: {apiGroup: a.io, kind: Thing, name: x}}":                                          "spec.ref a.io/Thing/fleet/x",
		"{secretRef: {name: x, namespace: ns}}":                                                  "spec.secretRef /Secret/ns/x credential",
		"{secretRef: ns/x}":                                                                      "spec.secretRef /Secret/ns/x credential",
		"{keySecretName: x, keySecretNamespace: ns}":                                             "spec.keySecretName /Secret/ns/x credential",
		"{secretNames: [x, z]}":                                                                  "spec.secretNames[0] /Secret/fleet/x credential; spec.secretNames[1] /Secret/fleet/z credential",
		"{imageReference: {name: x, tag: y}}":                                                    "spec.imageReference //fleet/x",
		"{extraConfigMap: {name: x}}":                                                            "spec.extraConfigMap /ConfigMap/fleet/x",
		"{credentials: {name: x}}":                                                               "spec.credentials //fleet/x credential",
		"{bmc: {credentialsName: x}}":                                                            "spec.bmc.credentialsName //fleet/x credential",
		"{userFrom: {secretKeyRef: {name: x, key: k}}}":                                          "spec.userFrom.secretKeyRef /Secret/fleet/x",
		"{endpoint: {name: x, namespace: ns}}":                                                   "spec.endpoint //ns/x",
		"{endpoint: {name: x}}":                                                                  "spec.endpoint //fleet/x weak",
		"{hardwareName: x}":                                                                      "spec.hardwareName //fleet/x weak",
		"{ipAddressFromIPPool: x, gateway: {fromIPPool: z}}":                                     "spec.gateway.fromIPPool //fleet/z weak; spec.ipAddressFromIPPool //fleet/x weak",
		"{credentials: {fromSecret: x}}":                                                         "spec.credentials.fromSecret /Secret/fleet/x credential",
		"{from: x, fromage: x, validFrom: x}":                                                    "",
		"{failureDomains: [x]}":                                                                  "spec.failureDomains[0] //fleet/x weak",
		"{a: [{poolRefs: [{name: x}]}]}":                                                         "spec.a[0].poolRefs[0] //fleet/x",
		"{clientSecret: hunter2, credentials: hunter2, token: {secret: a}}":                      "",
		"{secretPrefix: x, secureSecretsBackend: z, clusterName: z}":                             "",
		"{keyRef: {name: 'arn:aws:x'}, imageRef: 'a b', endpoint: {name: 7}}":                    "",
		"{variables: [{value: {secretRef: {name: x}}}], patches: [{a: {secretRef: {name: x}}}]}": "",
		"{subnet: {name: x, cidr: y}}":                                                           "",
		"{clusterRef: {name: x}, kind: Thing, spec: [7, null, {}]}":                              "",
		"{resources: [{metadata: {annotations: {a.io/credential-from: x}}}]}":                    "spec.resources[0].metadata.annotations[a.io/credential-from] /Secret/fleet/x credential",
		"{resources: [{metadata: {annotations: {a.io/note: x, a.io/token-secret: x, metal3.io/BareMetalHost: ns/z}}}]}": "spec.resources[0].metadata.annotations[a.io/token-secret] /Secret/fleet/x credential; " +
			"spec.resources[0].metadata.annotations[metal3.io/BareMetalHost] /BareMetalHost/ns/z",
	} {
		o := object.Observe(parse(t, "apiVersion: infrastructure.cluster.x-k8s.io/v1\nkind: Thing\nmetadata: {name: a, namespace: fleet}\nspec: "+spec))
		var got []string
		for _, r := range o.References {
			text := fmt.Sprintf("%s %s/%s/%s/%s", r.Field, r.Ref.Group, r.Ref.Kind, r.Ref.Namespace, r.Ref.Name)
			if r.Uncertain {
				text += " weak"
			}
			if r.IsCredential() {
				text += " credential"
			}
			got = append(got, text)
		}
		if diff := cmp.Diff(want, strings.Join(got, "; ")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", spec, diff)
		}
	}
}

func TestReferenceFits(t *testing.T) {
	for _, c := range []struct {
		field, group, kind string
		fits               bool
	}{
		{"spec.dataTemplate", "x.io", "Metal3DataTemplate", true},
		{"spec.hardwareName", "x.io", "Hardware", true},
		{"spec.vpcRef", "x.io", "LinodeVPC", true},
		{"spec.ware", "x.io", "Hardware", false},
		{"spec.pcRef", "x.io", "LinodeVPC", false},
		{"spec.identityRef", "", "Secret", true},
		{"spec.dataTemplate", "x.io", "Hardware", false},
	} {
		if fits := (object.Reference{Field: c.field}).MatchScore(c.group, c.kind) > 0; fits != c.fits {
			t.Errorf("reference %s fits %s: %v", c.field, c.kind, fits)
		}
	}
	r := object.Reference{Field: "spec.dataTemplate"}
	if r.MatchScore("x.io", "Metal3DataTemplate") <= r.MatchScore("x.io", "Metal3MachineTemplate") {
		t.Error("dataTemplate must fit a Metal3DataTemplate better than a Metal3MachineTemplate")
	}
}

func TestObserveThePoolOfAnAddress(t *testing.T) {
	const older = "apiVersion: ipam.cluster.x-k8s.io/v1beta1\nkind: IPAddress\nmetadata: {name: a, namespace: fleet}\n"
	const newer = "apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddress\nmetadata: {name: a, namespace: fleet}\n"
	const poolRef = "spec: {address: 10.0.0.1, poolRef: {apiGroup: ipam.x.io, kind: Net, name: p}}"
	pool := &object.Ref{Group: "ipam.x.io", Kind: "Net", Namespace: "fleet", Name: "p"}
	for text, want := range map[string]*object.Ref{
		older + poolRef: pool, newer + poolRef: pool, newer: nil,
		"apiVersion: ipam.cluster.x-k8s.io/v1beta2\nkind: IPAddressClaim\n" + poolRef: nil,
	} {
		if diff := cmp.Diff(want, object.Observe(parse(t, text)).Pool); diff != "" {
			t.Errorf("%s (-want +got):\n%s", text, diff)
		}
	}
}

func TestTrueSince(t *testing.T) {
	raw := `{"status": {
		"conditions": [{"type": "Ready", "status": "True", "lastTransitionTime": "2026-05-01T12:00:00Z"}, "no condition", {"type": "Old", "status": "False", "lastTransitionTime": "2026-05-01T12:00:00Z"}],
		"v1beta2": {"conditions": [{"type": "Paused", "status": "True", "lastTransitionTime": "2026-05-02T12:00:00Z"}, {"type": "Odd", "status": 7, "lastTransitionTime": "yesterday"}]}
	}}`
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(raw), &o.Object); err != nil {
		t.Fatal(err)
	}
	for condition, want := range map[string]string{"Ready": "2026-05-01T12:00:00Z", "Paused": "2026-05-02T12:00:00Z", "Old": "", "Odd": "", "None": ""} {
		got := ""
		if at := object.TrueSince(o, condition); at != nil {
			got = at.UTC().Format(time.RFC3339)
		}
		if got != want {
			t.Errorf("%s is True since %q, want %q", condition, got, want)
		}
	}
}
