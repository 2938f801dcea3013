package chart_test

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	monitoringv1 "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"
)

const path = "../../charts/scute"

// external has the values for an external log, without a volume.
var external = []string{
	"replicas=2", "nats.url=tls://nats.example:4222", "nats.credentials.secretName=creds", "nats.tls.secretName=tls",
}

// rendered has all objects of the chart, decoded as the types that the API server uses.
type rendered struct {
	accounts     []corev1.ServiceAccount
	services     []corev1.Service
	statefulSets []appsv1.StatefulSet
	deployments  []appsv1.Deployment
	budgets      []policyv1.PodDisruptionBudget
	clusterRoles []rbacv1.ClusterRole
	roles        []rbacv1.Role
	bindings     []rbacv1.ClusterRoleBinding
	nsBindings   []rbacv1.RoleBinding
	cronJobs     []batchv1.CronJob
	crds         []apiextensionsv1.CustomResourceDefinition
	configMaps   []corev1.ConfigMap
	policies     []networkingv1.NetworkPolicy
	monitors     []monitoringv1.PodMonitor
	alerts       []monitoringv1.PrometheusRule
	guards       []admissionv1.ValidatingAdmissionPolicy
	guardUses    []admissionv1.ValidatingAdmissionPolicyBinding
}

// daemon returns the daemon's pod template for either kind of log.
func (r rendered) daemon() corev1.PodTemplateSpec {
	if len(r.statefulSets) > 0 {
		return r.statefulSets[0].Spec.Template
	}
	return r.deployments[0].Spec.Template
}

func (r rendered) hasAccount(name string) bool {
	return slices.ContainsFunc(r.accounts, func(a corev1.ServiceAccount) bool { return a.Name == name })
}

// argument returns the value of a flag.
func argument(args []string, flag string) string {
	for _, arg := range args {
		if value, ok := strings.CutPrefix(arg, flag+"="); ok {
			return value
		}
	}
	return ""
}

// helm runs the pinned helm and returns its output and, if it fails, its error output.
func helm(t *testing.T, args ...string) (stdout, complaint string) {
	t.Helper()
	binary, err := filepath.Abs("../../bin/helm")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(binary); err != nil {
		t.Fatalf("helm is missing: %v; `make test-chart` builds it", err)
	}
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(t.Context(), binary, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err = cmd.Run()
	var exit *exec.ExitError
	switch {
	case errors.As(err, &exit):
		return out.String(), errs.String()
	case err != nil:
		t.Fatalf("running helm: %v", err)
	}
	return out.String(), ""
}

func template(t *testing.T, values ...string) (stdout, complaint string) {
	t.Helper()
	return templateAs(t, "scute", "scute-system", values...)
}

func templateAs(t *testing.T, release, namespace string, values ...string) (stdout, complaint string) {
	t.Helper()
	args := []string{"template", release, path, "--namespace", namespace}
	for _, value := range values {
		args = append(args, "--set", value)
	}
	return helm(t, args...)
}

// render renders the chart and decodes every object strictly, so that unknown fields fail the test.
func render(t *testing.T, values ...string) rendered {
	t.Helper()
	return renderAs(t, "scute", "scute-system", values...)
}

func renderAs(t *testing.T, release, namespace string, values ...string) rendered {
	t.Helper()
	stdout, complaint := templateAs(t, release, namespace, values...)
	if complaint != "" {
		t.Fatal(complaint)
	}
	var r rendered
	for document := range strings.SplitSeq(stdout, "\n---\n") {
		var kind struct{ Kind string }
		if err := yaml.Unmarshal([]byte(document), &kind); err != nil {
			t.Fatalf("reading %s: %v", document, err)
		}
		switch kind.Kind {
		case "":
		case "ServiceAccount":
			add(t, document, &r.accounts)
		case "Service":
			add(t, document, &r.services)
		case "StatefulSet":
			add(t, document, &r.statefulSets)
		case "Deployment":
			add(t, document, &r.deployments)
		case "PodDisruptionBudget":
			add(t, document, &r.budgets)
		case "ClusterRole":
			add(t, document, &r.clusterRoles)
		case "Role":
			add(t, document, &r.roles)
		case "ClusterRoleBinding":
			add(t, document, &r.bindings)
		case "RoleBinding":
			add(t, document, &r.nsBindings)
		case "CronJob":
			add(t, document, &r.cronJobs)
		case "CustomResourceDefinition":
			add(t, document, &r.crds)
		case "ConfigMap":
			add(t, document, &r.configMaps)
		case "NetworkPolicy":
			add(t, document, &r.policies)
		case "PodMonitor":
			add(t, document, &r.monitors)
		case "PrometheusRule":
			add(t, document, &r.alerts)
		case "ValidatingAdmissionPolicy":
			add(t, document, &r.guards)
		case "ValidatingAdmissionPolicyBinding":
			add(t, document, &r.guardUses)
		default:
			t.Fatalf("the chart renders a %s, which rendered does not support", kind.Kind)
		}
	}
	return r
}

func add[T any](t *testing.T, document string, to *[]T) {
	t.Helper()
	var object T
	if err := yaml.UnmarshalStrict([]byte(document), &object); err != nil {
		t.Fatalf("decoding %s: %v", document, err)
	}
	*to = append(*to, object)
}
