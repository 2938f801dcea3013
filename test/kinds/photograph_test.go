package kinds

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/evanphx/json-patch/v5"
	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"scute.dev/test/harness"
	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
	"scute.dev/workflow/tasks/apply"
)

const pods = `template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}`

// changeable returns objects, each with merge patches that a user may apply.
func changeable() map[string][]string {
	const containers = `{spec: {template: {spec: {containers: [{name: c, image: j, env: [{name: A, value: b}], ports: [{containerPort: 80}], resources: {limits: {cpu: 1}}}]}}}}`
	return map[string][]string{
		`{apiVersion: v1, kind: ConfigMap, data: {k: v}}`:    {`{data: {k: w}}`, `{data: {l: m}}`, `{binaryData: {b: aGk=}}`},
		`{apiVersion: v1, kind: Secret, stringData: {k: v}}`: {`{stringData: {k: w}}`, `{type: example.com/other}`},
		`{apiVersion: v1, kind: Service, spec: {selector: {a: b}, ports: [{name: p, port: 80}]}}`: {
			`{spec: {type: NodePort}}`, `{spec: {type: LoadBalancer, externalTrafficPolicy: Local}}`, `{spec: {ports: [{name: p, port: 80}, {name: q, port: 81, protocol: UDP}]}}`, `{spec: {selector: {c: d}}}`,
			`{spec: {sessionAffinity: ClientIP}}`, `{spec: {internalTrafficPolicy: Local}}`, `{spec: {type: ExternalName, externalName: example.com, selector: null, ports: null}}`,
		},
		`{apiVersion: v1, kind: ServiceAccount}`:                                                                                     {`{automountServiceAccountToken: false}`, `{imagePullSecrets: [{name: a}]}`},
		`{apiVersion: v1, kind: ResourceQuota, spec: {hard: {pods: 10}}}`:                                                            {`{spec: {hard: {pods: 20, cpu: "1"}}}`},
		`{apiVersion: v1, kind: LimitRange, spec: {limits: [{type: Container, default: {cpu: "1"}}]}}`:                               {`{spec: {limits: [{type: Container, default: {cpu: "2"}}, {type: Pod, max: {memory: 1Gi}}]}}`},
		`{apiVersion: v1, kind: PersistentVolumeClaim, spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}}`: {`{metadata: {labels: {x: y}}}`},
		`{apiVersion: v1, kind: Endpoints, subsets: [{addresses: [{ip: 10.0.0.1}], ports: [{port: 80}]}]}`:                           {`{subsets: [{addresses: [{ip: 10.0.0.2}], ports: [{port: 80}, {name: z, port: 81}]}]}`},
		`{apiVersion: apps/v1, kind: Deployment, spec: {selector: {matchLabels: {a: b}}, ` + pods + `}}`:                             {containers, `{spec: {replicas: 3}}`, `{spec: {strategy: {type: Recreate}}}`, `{spec: {minReadySeconds: 5, paused: true}}`},
		`{apiVersion: apps/v1, kind: StatefulSet, spec: {serviceName: s, selector: {matchLabels: {a: b}}, ` + pods + `}}`:            {containers, `{spec: {replicas: 3}}`, `{spec: {updateStrategy: {type: OnDelete}}}`, `{spec: {persistentVolumeClaimRetentionPolicy: {whenDeleted: Delete}}}`},
		`{apiVersion: apps/v1, kind: DaemonSet, spec: {selector: {matchLabels: {a: b}}, ` + pods + `}}`:                              {containers, `{spec: {updateStrategy: {type: OnDelete}}}`},
		`{apiVersion: apps/v1, kind: ReplicaSet, spec: {selector: {matchLabels: {a: b}}, ` + pods + `}}`:                             {containers, `{spec: {replicas: 2}}`},
		`{apiVersion: batch/v1, kind: CronJob, spec: {schedule: "0 0 * * *", jobTemplate: {spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}}}`: {
			`{spec: {suspend: true}}`, `{spec: {schedule: "1 * * * *", concurrencyPolicy: Forbid}}`, `{spec: {timeZone: Etc/UTC}}`,
		},
		`{apiVersion: batch/v1, kind: Job, spec: {suspend: true, template: {spec: {restartPolicy: Never, containers: [{name: c, image: i}]}}}}`: {`{spec: {parallelism: 2}}`, `{spec: {activeDeadlineSeconds: 60}}`},
		`{apiVersion: networking.k8s.io/v1, kind: Ingress, spec: {defaultBackend: {service: {name: a, port: {number: 80}}}}}`:                   {`{spec: {rules: [{host: a.example.com}]}}`, `{spec: {tls: [{hosts: [b.example.com]}]}}`},
		`{apiVersion: networking.k8s.io/v1, kind: NetworkPolicy, spec: {podSelector: {}}}`:                                                      {`{spec: {egress: [{ports: [{port: 80}]}]}}`, `{spec: {policyTypes: [Ingress, Egress]}}`},
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: Role, rules: [{apiGroups: [""], resources: [pods], verbs: [get]}]}`:                   {`{rules: [{apiGroups: [""], resources: [pods], verbs: [get, list]}]}`, `{rules: []}`},
		`{apiVersion: rbac.authorization.k8s.io/v1, kind: RoleBinding, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: view}, subjects: []}`: {
			`{subjects: [{kind: ServiceAccount, name: a, namespace: b}]}`, `{subjects: [{kind: User, name: u}]}`,
		},
		`{apiVersion: policy/v1, kind: PodDisruptionBudget, spec: {minAvailable: 1, selector: {matchLabels: {a: b}}}}`: {`{spec: {minAvailable: 50%}}`, `{spec: {unhealthyPodEvictionPolicy: AlwaysAllow}}`},
		`{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, spec: {maxReplicas: 3, scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: d}}}`: {
			`{spec: {minReplicas: 2}}`, `{spec: {metrics: [{type: Resource, resource: {name: memory, target: {type: Utilization, averageUtilization: 50}}}]}}`, `{spec: {behavior: {scaleDown: {stabilizationWindowSeconds: 60}}}}`,
		},
		`{apiVersion: coordination.k8s.io/v1, kind: Lease, spec: {holderIdentity: a}}`:                                                                                                          {`{spec: {leaseDurationSeconds: 5}}`, `{spec: {holderIdentity: b}}`},
		`{apiVersion: discovery.k8s.io/v1, kind: EndpointSlice, addressType: IPv4, endpoints: [{addresses: [10.0.0.1]}]}`:                                                                       {`{endpoints: [{addresses: [10.0.0.2], conditions: {ready: false}}]}`, `{ports: [{name: p, port: 80}]}`},
		`{apiVersion: cluster.x-k8s.io/v1beta2, kind: MachineHealthCheck, spec: {clusterName: c, selector: {matchLabels: {a: b}}}}`:                                                             {`{spec: {checks: {nodeStartupTimeoutSeconds: 60}}}`, `{metadata: {annotations: {x: y}}}`},
		`{apiVersion: cluster.x-k8s.io/v1beta2, kind: Cluster, spec: {paused: true, clusterNetwork: {pods: {cidrBlocks: [10.0.0.0/8]}}, infrastructureRef: {apiGroup: a.b, kind: C, name: c}}}`: {`{spec: {clusterNetwork: {serviceDomain: x.y}}}`, `{metadata: {labels: {x: y}}}`},
	}
}

// TestRollbackIsAPhotograph changes random objects with Apply and rolls that back. Each object is restored except for
// what the API server owns, or the undo fails and names it.
func TestRollbackIsAPhotograph(t *testing.T) {
	ctx := harness.Deadline(t, 5*time.Minute)
	home := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{GenerateName: "photograph-"}}
	harness.Must(t, admin().Create(ctx, home))
	all, n := changeable(), 0
	changed, failed := make(map[string]int), make(map[string]int)
	rapid.Check(t, func(rt *rapid.T) {
		base := rapid.SampledFrom(slices.Sorted(maps.Keys(all))).Draw(rt, "object")
		n++
		draw := func(what string) *unstructured.Unstructured {
			data, err := yaml.YAMLToJSON([]byte(base))
			harness.Must(t, err)
			for i, patch := range all[base] {
				if rapid.Bool().Draw(rt, fmt.Sprint(what, i)) {
					change, err := yaml.YAMLToJSON([]byte(patch))
					harness.Must(t, err)
					data, err = jsonpatch.MergePatch(data, change)
					harness.Must(t, err)
				}
			}
			u := &unstructured.Unstructured{}
			harness.Must(t, json.Unmarshal(data, &u.Object))
			u.SetNamespace(home.Name)
			u.SetName(fmt.Sprintf("o%d", n))
			return u
		}
		before := draw("before ")
		if err := admin().Create(ctx, before.DeepCopy()); err != nil {
			return // the changes cannot be combined
		}
		photograph := func() (*unstructured.Unstructured, map[string]any) {
			u := &unstructured.Unstructured{}
			u.SetGroupVersionKind(before.GroupVersionKind())
			harness.Must(t, admin().Get(ctx, client.ObjectKeyFromObject(before), u))
			content := access.ContentOf(u)
			unstructured.RemoveNestedField(content, "metadata", "annotations", "deprecated.daemonset.template.generation") // set by the API server
			return u, content
		}
		_, was := photograph()
		with, err := json.Marshal(map[string]any{"manifests": []any{draw("after ").Object}, "force": true, "wait": false})
		harness.Must(t, err)
		s := &step{t: t, kind: &apply.Kind{Clusters: clusters(true)}, namespace: home.Name, name: "apply", with: string(with)}
		if before.GetKind() == "Secret" { // a manifest with a Secret is refused
			text, err := json.Marshal(draw("after ").Object)
			harness.Must(t, err)
			harness.Must(t, admin().Create(ctx, configMap(home.Name, fmt.Sprintf("source-%d", n), map[string]string{"m": string(text)})))
			s.with = fmt.Sprintf(`{"from": {"configMapRef": {"name": "source-%d"}}, "force": true, "wait": false}`, n)
		}
		if err := s.run(ctx); err != nil && !task.IsFinal(err) {
			rt.Fatalf("%s: %v", before.GetKind(), err)
		}
		u, then := photograph()
		if cmp.Equal(was, then) {
			return
		}
		changed[before.GetKind()]++
		err = s.takeBack(ctx)
		_, now := photograph()
		switch diff := cmp.Diff(was, now); {
		case err == nil && diff != "":
			rt.Fatalf("%s: the undo succeeded, but the object differs: before (-), after the rollback (+):\n%s", before.GetKind(), diff)
		case err != nil && (!task.IsFinal(err) || !strings.Contains(err.Error(), u.GetName())):
			rt.Fatalf("%s: undo = %v, want a final error with the object's name", before.GetKind(), err)
		case err != nil:
			failed[before.GetKind()]++
		}
	})
	t.Logf("%d objects: changed %v, of which could not be restored %v", n, changed, failed)
	if len(changed) < len(all)/2 {
		t.Errorf("of %d kinds only %d were changed, want at least half", len(all), len(changed))
	}
}
