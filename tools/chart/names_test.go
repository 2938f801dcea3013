package chart_test

import (
	"slices"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admissionregistration/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// all renders every object that has a name.
var all = []string{
	"backup.schedule=@daily", "backup.existingClaim=copies", "webhook.url=https://events.example", "tracing.endpoint=https://collector:4317",
	"metrics.enabled=true", "crds.install=false",
}

// TestBindingsNameWhatIsRendered checks that each binding refers to a rendered role of the same name and a rendered
// account, that the daemon and the backup job run as rendered accounts, and that the roles grant access to the objects
// that the arguments name.
func TestBindingsNameWhatIsRendered(t *testing.T) {
	for name, values := range map[string][]string{
		"default":          nil,
		"nameOverride":     {"nameOverride=turtle"},
		"fullnameOverride": {"fullnameOverride=turtle"},
		"longest":          {"fullnameOverride=" + strings.Repeat("turtle-", 7) + "end"},
		"account":          {"serviceAccount.name=shell"},
		"external":         external,
	} {
		t.Run(name, func(t *testing.T) { wantBound(t, render(t, slices.Concat(all, values)...)) })
	}
}

func wantBound(t *testing.T, r rendered) {
	t.Helper()
	subjects := func(kind, name string, of []rbacv1.Subject) {
		t.Helper()
		for _, s := range of {
			if s.Namespace != "scute-system" || !r.hasAccount(s.Name) {
				t.Errorf("%s %s refers to the account %s/%s, which is not rendered", kind, name, s.Namespace, s.Name)
			}
		}
	}
	for _, b := range r.nsBindings {
		subjects("RoleBinding", b.Name, b.Subjects)
		if b.RoleRef.Kind != "Role" || b.RoleRef.Name != b.Name || !slices.ContainsFunc(r.roles, func(role rbacv1.Role) bool {
			return role.Name == b.RoleRef.Name && role.Namespace == b.Namespace
		}) {
			t.Errorf("RoleBinding %s/%s refers to %s %q, want a rendered Role of the same name", b.Namespace, b.Name, b.RoleRef.Kind, b.RoleRef.Name)
		}
	}
	for _, b := range r.bindings {
		subjects("ClusterRoleBinding", b.Name, b.Subjects)
		if b.RoleRef.Name != b.Name || !slices.ContainsFunc(r.clusterRoles, func(role rbacv1.ClusterRole) bool { return role.Name == b.RoleRef.Name }) {
			t.Errorf("ClusterRoleBinding %s refers to ClusterRole %q, want a rendered one of the same name", b.Name, b.RoleRef.Name)
		}
	}
	for _, b := range r.guardUses {
		if !slices.ContainsFunc(r.guards, func(p admissionv1.ValidatingAdmissionPolicy) bool { return p.Name == b.Spec.PolicyName }) {
			t.Errorf("ValidatingAdmissionPolicyBinding %s refers to policy %q, which is not rendered", b.Name, b.Spec.PolicyName)
		}
	}
	daemon := r.daemon().Spec
	if job := r.cronJobs[0].Spec.JobTemplate.Spec.Template.Spec; !r.hasAccount(daemon.ServiceAccountName) || !r.hasAccount(job.ServiceAccountName) {
		t.Errorf("the daemon runs as %s and the backup job as %s, want rendered accounts", daemon.ServiceAccountName, job.ServiceAccountName)
	}
	for _, arg := range []string{"--audit-key", "--audit-configmap", "--webhook-position", "--tracing-position"} {
		object := argument(daemon.Containers[0].Args, arg)
		namespace, name, _ := strings.Cut(object, "/")
		if !slices.ContainsFunc(r.roles, func(role rbacv1.Role) bool {
			return role.Namespace == namespace && slices.ContainsFunc(role.Rules, func(rule rbacv1.PolicyRule) bool {
				return slices.Equal(rule.ResourceNames, []string{name}) && slices.Contains(rule.Verbs, "get")
			})
		}) {
			t.Errorf("no Role grants %s=%s", arg, object)
		}
	}
}

// TestDaemonIsFoundByItsComponent checks that scutectl finds the daemon's pods, and only those, by a label that does
// not depend on the names of the release.
func TestDaemonIsFoundByItsComponent(t *testing.T) {
	const label = "scute.dev/component" // connect.DaemonLabel
	for _, values := range [][]string{nil, {"nameOverride=turtle"}, {"fullnameOverride=turtle"}, external} {
		r := render(t, slices.Concat(all, values)...)
		if got := r.daemon().Labels[label]; got != "daemon" {
			t.Errorf("%v: the daemon's pods have %s=%q", values, label, got)
		}
		if got := r.cronJobs[0].Spec.JobTemplate.Spec.Template.Labels[label]; got != "" {
			t.Errorf("%v: the pods of backups have %s=%q", values, label, got)
		}
	}
}

// TestReleasesKeepApart checks that releases with long names share only the CRDs, and that no name exceeds the limit of
// its kind: pods of a StatefulSet have its name and a hash in a label, and Jobs of a CronJob have its name and a time.
func TestReleasesKeepApart(t *testing.T) {
	const longest = 53 // limit of Helm for the name of a release
	long := strings.Repeat("management-", 5)
	names := map[string]string{}
	for _, release := range []string{"scute", "other", long[:longest-8] + "-staging", long[:longest-1] + "a", long[:longest-1] + "b", long[:40] + "-scute-east-1", long[:40] + "-scute-east-2", long[:longest-4]} {
		r := renderAs(t, release, "in-"+release[:5], all...)
		const most = 52
		if name := r.statefulSets[0].Name; len(name) > most {
			t.Errorf("StatefulSet name %s has %d characters", name, len(name))
		}
		if name := r.cronJobs[0].Name; len(name) > most {
			t.Errorf("CronJob name %s has %d characters", name, len(name))
		}
		mine := []string{r.cronJobs[0].Name, r.statefulSets[0].Name}
		for _, o := range r.clusterRoles {
			mine = append(mine, "ClusterRole "+o.Name)
		}
		for _, o := range r.roles {
			mine = append(mine, "Role "+o.Name)
		}
		for _, name := range mine {
			if other := names[name]; other != "" {
				t.Errorf("the releases %s and %s both have %s", other, release, name)
			}
			names[name] = release
		}
	}
}
