package chart_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

func TestEmbeddedLogHasOneWriterAndAVolume(t *testing.T) {
	r := render(t, "log.maxBytes=4294967296")
	if len(r.statefulSets) != 1 || len(r.deployments) != 0 || len(r.budgets) != 0 || len(r.services) != 0 {
		t.Fatalf("got %d StatefulSets, %d Deployments, %d budgets and %d Services, want only a StatefulSet",
			len(r.statefulSets), len(r.deployments), len(r.budgets), len(r.services))
	}
	set := r.statefulSets[0].Spec
	if *set.Replicas != 1 {
		t.Errorf("replicas = %d, want 1", *set.Replicas)
	}
	for _, v := range set.Template.Spec.Volumes {
		if v.Name == "tmp" && v.EmptyDir.SizeLimit.Value() != 1<<30 {
			t.Errorf("size limit of /tmp = %s", v.EmptyDir.SizeLimit)
		}
	}
	want := []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOncePod}
	if diff := cmp.Diff(want, set.VolumeClaimTemplates[0].Spec.AccessModes); diff != "" {
		t.Errorf("access modes of the log's volume (-want +got):\n%s", diff)
	}
	wantArgs(t, set.Template.Spec,
		"--health-address=:8081", "--metrics-address=127.0.0.1:8080",
		"--log-level=info", "--log-format=json", "--run-concurrency=8", "--run-parallel=16",
		"--namespace-events-per-hour=50000", "--namespace-bytes-per-hour=67108864", "--move-concurrency=4", "--cluster-backup-concurrency=2", "--cluster-backup-max-bytes=201326592", "--remediation-concurrency=4", "--log-max-bytes=4294967296",
		"--audit-key=scute-system/scute-audit-key", "--audit-configmap=scute-system/scute-audit", "--audit-interval=1m", "--log-dir=/var/lib/scute", "--log-listen=127.0.0.1:4222", "--log-access=scute-system/scute-log")
}

func TestExternalLogHasReplicasAndNoVolume(t *testing.T) {
	r := render(t, append(external, "metrics.enabled=true")...)
	if len(r.statefulSets) != 0 || len(r.deployments) != 1 || len(r.budgets) != 1 || len(r.services) != 1 {
		t.Fatalf("got %d StatefulSets, %d Deployments, %d budgets and %d Services, want a Deployment, a budget and a Service",
			len(r.statefulSets), len(r.deployments), len(r.budgets), len(r.services))
	}
	wantArgs(t, r.deployments[0].Spec.Template.Spec,
		"--health-address=:8081", "--metrics-address=:8080",
		"--log-level=info", "--log-format=json", "--run-concurrency=8", "--run-parallel=16",
		"--namespace-events-per-hour=50000", "--namespace-bytes-per-hour=67108864", "--move-concurrency=4", "--cluster-backup-concurrency=2", "--cluster-backup-max-bytes=201326592", "--remediation-concurrency=4",
		"--audit-key=scute-system/scute-audit-key", "--audit-configmap=scute-system/scute-audit", "--audit-interval=1m", "--audit-dir=/var/lib/scute-seal",
		"--nats-url=tls://nats.example:4222", "--log-replicas=3",
		"--nats-creds=/etc/scute/nats-credentials/nats.creds", "--nats-ca=/etc/scute/nats-tls/ca.crt",
		"--nats-cert=/etc/scute/nats-tls/tls.crt", "--nats-key=/etc/scute/nats-tls/tls.key")
}

// TestLogAccess checks the permissions for the log's tokens: the daemon may create and read both, operators may read
// both, readers may read only theirs. Without a listener, there are none.
func TestLogAccess(t *testing.T) {
	may := func(r rendered, role string) (names, verbs []string) {
		for _, have := range r.roles {
			for _, rule := range have.Rules {
				if have.Name == role && slices.Equal(rule.Resources, []string{"secrets"}) {
					names, verbs = append(names, rule.ResourceNames...), append(verbs, rule.Verbs...)
				}
			}
		}
		return names, verbs
	}
	reader, both := []string{"scute-log-reader"}, []string{"scute-log-reader", "scute-log-operator"}
	for role, want := range map[string]struct{ names, verbs []string }{
		"scute-log-access": {both, []string{"create", "get", "watch"}},
		"scute-log":        {both, []string{"get"}},
		"scute-log-reader": {reader, []string{"get"}},
	} {
		if names, verbs := may(render(t), role); !slices.Equal(names, want.names) || !slices.Equal(verbs, want.verbs) {
			t.Errorf("Role %s: got %v of the Secrets %v", role, verbs, names)
		}
	}
	checkpoints := rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"get", "list"}}
	for _, have := range render(t).roles {
		if people := have.Name == "scute-log" || have.Name == "scute-log-reader"; people && !slices.ContainsFunc(have.Rules, func(r rbacv1.PolicyRule) bool { return cmp.Equal(r, checkpoints) }) {
			t.Errorf("Role %s cannot read checkpoints, which scutectl audit needs", have.Name)
		}
	}
	for name, values := range map[string][]string{"no listener": {"log.listen="}, "external": external} {
		if _, verbs := may(render(t, values...), "scute-log-access"); verbs != nil {
			t.Errorf("%s: the daemon may %v Secrets of tokens, want no permission", name, verbs)
		}
	}
}

// TestWebhook checks that the Secret is mounted only if one is named, and that only the ConfigMap of the position may
// be written.
func TestWebhook(t *testing.T) {
	r := render(t, "webhook.url=https://events.example/scute", "webhook.secretName=hook")
	pod := r.statefulSets[0].Spec.Template.Spec
	wantRestricted(t, pod)
	for _, arg := range []string{"--webhook-url=https://events.example/scute", "--webhook-position=scute-system/scute-webhook", "--webhook-secret=/etc/scute/webhook"} {
		if !slices.Contains(pod.Containers[0].Args, arg) {
			t.Errorf("scuted has no argument %s", arg)
		}
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "hook" }) {
		t.Error("the Secret is not mounted")
	}
	want := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{"scute-webhook"}, Verbs: []string{"get", "update"}},
	}
	for _, role := range r.roles {
		if role.Name != "scute-webhook" {
			continue
		}
		if diff := cmp.Diff(want, role.Rules); diff != "" {
			t.Errorf("rules of the role (-want +got):\n%s", diff)
		}
		want = nil
	}
	if want != nil {
		t.Error("there is no Role for the position")
	}
	for _, arg := range render(t, "webhook.url=https://events.example/scute").statefulSets[0].Spec.Template.Spec.Containers[0].Args {
		if strings.HasPrefix(arg, "--webhook-secret") {
			t.Errorf("without a Secret: got argument %s", arg)
		}
	}
}

// TestTracing checks that credentials of the collector come from the Secret, and only those whose keys are named.
func TestTracing(t *testing.T) {
	r := render(t, "tracing.endpoint=https://collector:4317", "tracing.secretName=otel", "tracing.headersKey=headers", "tracing.caKey=ca.crt", "tracing.certKey=tls.crt", "tracing.keyKey=tls.key",
		"tracing.env.OTEL_RESOURCE_ATTRIBUTES=k8s.cluster.name=blue")
	pod := r.statefulSets[0].Spec.Template.Spec
	wantRestricted(t, pod)
	if !slices.Contains(pod.Containers[0].Args, "--tracing-position=scute-system/scute-tracing") {
		t.Errorf("arguments of scuted: %v", pod.Containers[0].Args)
	}
	want := []corev1.EnvVar{
		{Name: "OTEL_EXPORTER_OTLP_ENDPOINT", Value: "https://collector:4317"},
		{Name: "OTEL_EXPORTER_OTLP_HEADERS", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: "otel"}, Key: "headers"}}},
		{Name: "OTEL_EXPORTER_OTLP_CERTIFICATE", Value: "/etc/scute/tracing/ca.crt"},
		{Name: "OTEL_EXPORTER_OTLP_CLIENT_CERTIFICATE", Value: "/etc/scute/tracing/tls.crt"},
		{Name: "OTEL_EXPORTER_OTLP_CLIENT_KEY", Value: "/etc/scute/tracing/tls.key"},
		{Name: "OTEL_RESOURCE_ATTRIBUTES", Value: "k8s.cluster.name=blue"},
	}
	if diff := cmp.Diff(want, pod.Containers[0].Env); diff != "" {
		t.Errorf("variables of scuted (-want +got):\n%s", diff)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v corev1.Volume) bool { return v.Secret != nil && v.Secret.SecretName == "otel" }) {
		t.Error("the Secret is not mounted")
	}
	if !slices.ContainsFunc(r.roles, func(role rbacv1.Role) bool {
		return role.Name == "scute-tracing" && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return slices.Equal(rule.ResourceNames, []string{"scute-tracing"}) })
	}) {
		t.Error("there is no Role for the position")
	}
	bare := render(t, "tracing.endpoint=http://collector:4317", "tracing.secretName=otel").statefulSets[0].Spec.Template.Spec.Containers[0].Env
	if len(bare) != 1 {
		t.Errorf("without keys: got variables %v", bare)
	}
	if off := render(t).statefulSets[0].Spec.Template.Spec.Containers[0].Env; len(off) != 0 {
		t.Errorf("without tracing: got variables %v", off)
	}
}

// TestBackup checks that the backup job of an embedded log has only the permissions to reach it, and that of an
// external log only the named credentials and no access to the API server. Neither has the labels that identify the
// daemon's pods.
func TestBackup(t *testing.T) {
	r := render(t, "backup.schedule=17 * * * *", "backup.existingClaim=copies")
	job := r.cronJobs[0].Spec
	pod := job.JobTemplate.Spec.Template
	want := []string{"backup", "log", "/backup/scute", "--scute-namespace=scute-system", "--checkpoint=/etc/scute/checkpoint/checkpoint"}
	if diff := cmp.Diff(want, pod.Spec.Containers[0].Args); diff != "" || job.Schedule != "17 * * * *" || job.ConcurrencyPolicy != batchv1.ForbidConcurrent {
		t.Errorf("%s %s, arguments (-want +got):\n%s", job.Schedule, job.ConcurrencyPolicy, diff)
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == "copies"
	}) {
		t.Error("the volume for backups is not mounted")
	}
	daemon := r.statefulSets[0].Spec.Template.Spec
	if diff := cmp.Diff(daemon.SecurityContext, pod.Spec.SecurityContext) + cmp.Diff(daemon.Containers[0].SecurityContext, pod.Spec.Containers[0].SecurityContext); diff != "" {
		t.Errorf("security contexts differ from those of the daemon (-daemon +backup):\n%s", diff)
	}
	if !slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool { return v.ConfigMap != nil && v.ConfigMap.Name == "scute-audit" }) {
		t.Error("the published checkpoint is not mounted")
	}
	if pod.Labels["app.kubernetes.io/name"] == r.statefulSets[0].Spec.Selector.MatchLabels["app.kubernetes.io/name"] {
		t.Error("the pod of a backup is selected as the daemon")
	}
	var granted []string
	for _, binding := range r.nsBindings {
		if slices.ContainsFunc(binding.Subjects, func(s rbacv1.Subject) bool { return s.Name == pod.Spec.ServiceAccountName }) {
			granted = append(granted, binding.RoleRef.Name)
		}
	}
	if !slices.Equal(granted, []string{"scute-backup"}) {
		t.Errorf("got roles %v for the backup, want scute-backup", granted)
	}
	rules := []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}},
		{APIGroups: []string{""}, Resources: []string{"pods/portforward"}, ResourceNames: []string{r.statefulSets[0].Name + "-0"}, Verbs: []string{"create"}},
		{APIGroups: []string{""}, Resources: []string{"secrets"}, ResourceNames: []string{"scute-log-reader"}, Verbs: []string{"get"}},
	}
	var may []rbacv1.PolicyRule
	for _, role := range r.roles {
		if role.Name == "scute-backup" {
			may = role.Rules
		}
	}
	if diff := cmp.Diff(rules, may); diff != "" {
		t.Errorf("rules of the backup (-want +got):\n%s", diff)
	}

	r = render(t, slices.Concat(external, []string{"backup.schedule=@daily", "backup.existingClaim=copies", "backup.nats.credentialsSecretName=auditor"})...)
	pod = r.cronJobs[0].Spec.JobTemplate.Spec.Template
	want = []string{
		"backup", "log", "/backup/scute", "--nats=tls://nats.example:4222", "--nats-creds=/etc/scute/nats-credentials/nats.creds",
		"--nats-ca=/etc/scute/nats-tls/ca.crt", "--nats-cert=/etc/scute/nats-tls/tls.crt", "--nats-key=/etc/scute/nats-tls/tls.key",
		"--checkpoint=/etc/scute/checkpoint/checkpoint",
	}
	if diff := cmp.Diff(want, pod.Spec.Containers[0].Args); diff != "" {
		t.Errorf("arguments with an external log (-want +got):\n%s", diff)
	}
	var secrets []string
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil {
			secrets = append(secrets, v.Secret.SecretName)
		}
	}
	if !slices.Equal(secrets, []string{"auditor", "tls"}) || *pod.Spec.AutomountServiceAccountToken {
		t.Errorf("backup of an external log: got Secrets %v, token mounted: %t", secrets, *pod.Spec.AutomountServiceAccountToken)
	}
	r = render(t, "backup.schedule=@daily", "backup.existingClaim=copies", "audit.enabled=false")
	pod = r.cronJobs[0].Spec.JobTemplate.Spec.Template
	if len(pod.Spec.Volumes) != 2 || slices.ContainsFunc(pod.Spec.Containers[0].Args, func(arg string) bool { return strings.HasPrefix(arg, "--checkpoint") }) {
		t.Error("the backup of a log without checkpoints has a checkpoint")
	}
	if off := render(t); len(off.cronJobs) != 0 || len(off.accounts) != 1 {
		t.Error("there are objects for backups without a schedule")
	}
}

func wantArgs(t *testing.T, pod corev1.PodSpec, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, pod.Containers[0].Args); diff != "" {
		t.Errorf("arguments of scuted (-want +got):\n%s", diff)
	}
}

func TestPodsMeetTheRestrictedStandard(t *testing.T) {
	for name, values := range map[string][]string{"embedded": nil, "external": external} {
		t.Run(name, func(t *testing.T) {
			r := render(t, values...)
			var pods []corev1.PodSpec
			for _, set := range r.statefulSets {
				pods = append(pods, set.Spec.Template.Spec)
			}
			for _, deployment := range r.deployments {
				pods = append(pods, deployment.Spec.Template.Spec)
			}
			for _, pod := range pods {
				wantRestricted(t, pod)
			}
		})
	}
}

// wantRestricted checks the Pod Security Standard "restricted"
// (https://k8s.io/docs/concepts/security/pod-security-standards), a read-only root file system, and resource limits.
func wantRestricted(t *testing.T, pod corev1.PodSpec) {
	t.Helper()
	yes, no := true, false
	security := pod.SecurityContext
	if diff := cmp.Diff(&yes, security.RunAsNonRoot); diff != "" {
		t.Errorf("runAsNonRoot of the pod (-want +got):\n%s", diff)
	}
	if security.SeccompProfile == nil || security.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault {
		t.Errorf("seccompProfile of the pod = %v", security.SeccompProfile)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC {
		t.Error("the pod shares a namespace with its host")
	}
	for _, volume := range pod.Volumes {
		if volume.Secret == nil && volume.EmptyDir == nil {
			t.Errorf("volume %s is neither a Secret nor an emptyDir", volume.Name)
		}
		if volume.EmptyDir != nil && volume.EmptyDir.SizeLimit.IsZero() {
			t.Errorf("volume %s has no size limit", volume.Name)
		}
	}
	for _, c := range pod.Containers {
		want := &corev1.SecurityContext{
			AllowPrivilegeEscalation: &no,
			ReadOnlyRootFilesystem:   &yes,
			Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
		}
		if diff := cmp.Diff(want, c.SecurityContext); diff != "" {
			t.Errorf("securityContext of container %s (-want +got):\n%s", c.Name, diff)
		}
		if c.LivenessProbe == nil || c.ReadinessProbe == nil || c.StartupProbe == nil {
			t.Errorf("container %s lacks a liveness, readiness or startup probe", c.Name)
		}
		if c.Resources.Requests.Cpu().IsZero() || c.Resources.Limits.Memory().IsZero() {
			t.Errorf("container %s has no resource requests or limits: %v", c.Name, c.Resources)
		}
	}
}

func TestRolesGrantNothingByWildcard(t *testing.T) {
	r := render(t)
	rules := map[string][]rbacv1.PolicyRule{}
	for _, role := range r.clusterRoles {
		rules[role.Name] = role.Rules
	}
	for _, role := range r.roles {
		rules[role.Name] = role.Rules
	}
	for name, rules := range rules {
		if len(rules) == 0 && name != "scute-providers" { // it aggregates the rules of other roles
			t.Errorf("role %s grants nothing", name)
		}
		for _, rule := range rules {
			if cmp.Equal(rule, impersonation()) && name == "scute-daemon" {
				continue
			}
			words := slices.Concat(rule.APIGroups, rule.Resources, rule.Verbs, rule.NonResourceURLs)
			for _, word := range words {
				if strings.Contains(word, "*") || slices.Contains([]string{"bind", "escalate", "impersonate"}, word) {
					t.Errorf("role %s grants %q in %v", name, word, rule)
				}
			}
			if len(rule.APIGroups) == 0 || len(rule.Resources) == 0 || len(rule.Verbs) == 0 {
				t.Errorf("role %s has an empty rule: %v", name, rule)
			}
		}
	}
}

// impersonation returns the only rule that allows impersonation: tasks of a WorkflowRun act as its ServiceAccount.
func impersonation() rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"}, Verbs: []string{"impersonate"}}
}

func TestWorkflowsAreSwitchedOnAndOff(t *testing.T) {
	impersonates := func(r rendered) bool {
		for _, role := range r.clusterRoles {
			for _, rule := range role.Rules {
				if slices.Contains(rule.Verbs, "impersonate") {
					return true
				}
			}
		}
		return false
	}
	if !impersonates(render(t)) {
		t.Error("tasks of WorkflowRuns cannot act as their ServiceAccounts")
	}
	if impersonates(render(t, "workflows.enabled=false")) {
		t.Error("workflows.enabled=false grants the permission to impersonate")
	}
	for values, want := range map[string][]string{
		"": nil,
		"workflows.execEnabled=true,workflows.defaultFailurePolicy=Pause": {"--default-failure-policy=Pause", "--enable-exec"},
	} {
		args := render(t, strings.Split(values, ",")...).statefulSets[0].Spec.Template.Spec.Containers[0].Args
		var got []string
		for _, arg := range args {
			if strings.HasPrefix(arg, "--default-failure-policy") || strings.HasPrefix(arg, "--enable-exec") {
				got = append(got, arg)
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", values, diff)
		}
	}
}

// TestRemediationIsSwitchedOnAndOff checks that the daemon has no permissions for remediation if it is disabled, and
// that Cluster API can always access the kinds.
func TestRemediationIsSwitchedOnAndOff(t *testing.T) {
	roles := func(r rendered) map[string]rbacv1.ClusterRole {
		byName := map[string]rbacv1.ClusterRole{}
		for _, role := range r.clusterRoles {
			byName[role.Name] = role
		}
		return byName
	}
	on := render(t, "remediation.escalation[0].group=cures.example", "remediation.escalation[0].resources[0]=reboots")
	may := map[string]bool{}
	for _, rule := range roles(on)["scute-remediator"].Rules {
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				may[verb+" "+resource+"."+rule.APIGroups[0]] = true
			}
		}
	}
	for _, want := range []string{"watch repairpolicies.scute.dev", "watch repairlimits.scute.dev", "patch repairlimits/status.scute.dev", "patch machines.cluster.x-k8s.io", "create reboots.cures.example"} {
		if !may[want] {
			t.Errorf("the remediator may not %s", want)
		}
	}
	for _, never := range []string{"delete machines.cluster.x-k8s.io", "patch secrets.", "list secrets.", "delete kubeadmcontrolplanes.controlplane.cluster.x-k8s.io"} {
		if may[never] {
			t.Errorf("the remediator may %s", never)
		}
	}
	if _, ok := roles(on)["scute-health-checks"].Labels["cluster.x-k8s.io/aggregate-to-manager"]; !ok {
		t.Error("Cluster API may not create requests from the template")
	}

	off := render(t, "remediation.enabled=false")
	if _, ok := roles(off)["scute-remediator"]; ok || len(off.bindings) != 2 { // one for the daemon and one for aggregated provider rules
		t.Error("remediation.enabled=false grants permissions for remediation")
	}
	if args := off.statefulSets[0].Spec.Template.Spec.Containers[0].Args; !slices.Contains(args, "--remediation=false") {
		t.Errorf("arguments with remediation.enabled=false: %v", args)
	}
}

// TestPeopleSeeWhatRemediationIsAbout checks that users may list the kinds of Cluster API that scutectl get machines
// and doctor read with the user's own permissions.
func TestPeopleSeeWhatRemediationIsAbout(t *testing.T) {
	roles := map[string][]rbacv1.PolicyRule{}
	for _, role := range render(t).clusterRoles {
		roles[role.Name] = role.Rules
	}
	for _, name := range []string{"scute-viewer", "scute-operator"} {
		may := map[string][]string{}
		for _, rule := range roles[name] {
			for _, resource := range rule.Resources {
				may[resource+"."+rule.APIGroups[0]] = rule.Verbs
			}
		}
		for _, resource := range []string{
			"clusters.cluster.x-k8s.io", "machines.cluster.x-k8s.io", "machinesets.cluster.x-k8s.io", "machinedeployments.cluster.x-k8s.io",
			"machinehealthchecks.cluster.x-k8s.io", "kubeadmcontrolplanes.controlplane.cluster.x-k8s.io",
		} {
			if diff := cmp.Diff([]string{"get", "list"}, may[resource]); diff != "" {
				t.Errorf("verbs of %s for %s (-want +got):\n%s", name, resource, diff)
			}
		}
	}
}

func TestCRDsAreTheGeneratedOnesAndAreKept(t *testing.T) {
	files, err := filepath.Glob("../../config/crd/*.yaml")
	if err != nil || len(files) == 0 {
		t.Fatalf("got %d files in config/crd, error %v", len(files), err)
	}
	want := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var crd apiextensionsv1.CustomResourceDefinition
		if err := yaml.UnmarshalStrict(text, &crd); err != nil {
			t.Fatalf("decoding %s: %v", file, err)
		}
		want[crd.Name] = crd.Spec
	}
	got := map[string]apiextensionsv1.CustomResourceDefinitionSpec{}
	for _, crd := range render(t).crds {
		got[crd.Name] = crd.Spec
		if crd.Annotations["helm.sh/resource-policy"] != "keep" {
			t.Errorf("CRD %s and its resources would be deleted with the release", crd.Name)
		}
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("CRDs of the chart (-config/crd +rendered):\n%s", diff)
	}
	if crds := render(t, "crds.install=false").crds; len(crds) != 0 {
		t.Errorf("crds.install=false renders %d CRDs, want 0", len(crds))
	}
}

func TestSchemaRefuses(t *testing.T) {
	for value, names := range map[string]string{
		"replicas=2":                                  "replicas", // with an embedded log
		"replicas=-1":                                 "replicas",
		"replica=1":                                   "replica",
		"log.maxBytes=many":                           "maxBytes",
		"log.maxBytes=1024":                           "maxBytes",
		"nats.streamReplicas=7":                       "streamReplicas",
		"log.listen=0.0.0.0:4222":                     "listen",
		"log.storage.accessMode=ReadWriteMany":        "accessMode",
		"nats.url=nats.example:4222":                  "url",
		"webhook.url=events.example":                  "url",
		"fullnameOverride=" + strings.Repeat("x", 53): "fullnameOverride",
		"backup.schedule=hourly":                      "schedule",
		"backup.schedule=@hourly":                     "existingClaim",
		"backup.schedule=@hourly,backup.existingClaim=copies,log.listen=": "listen",
		"tracing.endpoint=collector:4317":                                 "endpoint",
		"tracing.env.PATH=/":                                              "OTEL_",
		"webhook.url=https://user:pass@example":                           "url",
		"tracing.headersKey=headers":                                      "secretName",
		"tracing.keyKey=tls.key":                                          "secretName",
		"metrics.enabled=false,metrics.rules.enabled=true":                "metrics/enabled",
		"allowAddresses[0]=10.0.0.0/33":                                   "allowAddresses",
		"allowAddresses[0]=fd00::/129":                                    "allowAddresses",
		"logging.level=loud":                                              "level",
		"workflows.defaultFailurePolicy=Hope":                             "defaultFailurePolicy",
		"workflows.parallel=0":                                            "parallel",
		"workflows.exec=true":                                             "exec",
		"remediation.concurrency=0":                                       "concurrency",
		"remediation.escalation[0].group=*":                               "group",
		"remediation.policy=x":                                            "policy",
		"image.repository=":                                               "repository",
		"resources.request.cpu=1":                                         "request",
		"providers.mine[0].group=*":                                       "group",
		"providers.mine[0].resources[0]=*":                                "resources",
		"providers.core[0].resources[0]=clusters/":                        "resources",
		"providers.core=null":                                             "core",
	} {
		t.Run(value, func(t *testing.T) {
			_, complaint := template(t, value)
			if !strings.Contains(complaint, names) {
				t.Errorf("want an error that names %q, got %q", names, complaint)
			}
		})
	}
}

func TestProvidersAreAddedAndRemovedByName(t *testing.T) {
	r := render(t, "providers.aws=null", "providers.mine[0].group=mine.example", "providers.mine[0].resources[0]=boxes")
	groups := map[string]bool{}
	for _, role := range r.clusterRoles {
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				groups[rule.APIGroups[0]+"/"+resource] = true
			}
		}
	}
	if !groups["mine.example/boxes"] || !groups["cluster.x-k8s.io/clusters"] {
		t.Error("the added provider is missing, or replaced the others")
	}
	if groups["infrastructure.cluster.x-k8s.io/awsclusters"] {
		t.Error("the removed provider still has rules")
	}
}
