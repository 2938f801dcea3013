package chart_test

import (
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// TestGuideRendersTheRoleThatItBinds checks that the guide's command renders only the role for targets, with the name
// that the guide binds.
func TestGuideRendersTheRoleThatItBinds(t *testing.T) {
	guide, err := os.ReadFile("../../docs/move.md")
	if err != nil {
		t.Fatal(err)
	}
	command := regexp.MustCompile(`(?m)^helm (template scute) charts/scute (-s \S+) \| kubectl .*apply`).FindSubmatch(guide)
	bound := regexp.MustCompile(`--clusterrole=(\S+)`).FindSubmatch(guide)
	if command == nil || bound == nil {
		t.Fatal("the guide renders or binds no role")
	}
	args := append(strings.Fields(string(command[1])), path)
	stdout, complaint := helm(t, append(args, strings.Fields(string(command[2]))...)...)
	if complaint != "" {
		t.Fatal(complaint)
	}
	role := rbacv1.ClusterRole{}
	if err := yaml.UnmarshalStrict([]byte(stdout), &role); err != nil {
		t.Fatal(err)
	}
	if role.Kind != "ClusterRole" || role.Name != string(bound[1]) {
		t.Errorf("the guide renders %s %s and binds ClusterRole %s", role.Kind, role.Name, bound[1])
	}
}

// TestFinalizersOfOwnersMayBeUpdated checks the permissions for copies with owners: with
// OwnerReferencesPermissionEnforcement, an object may only name an owner whose finalizers its creator may update.
func TestFinalizersOfOwnersMayBeUpdated(t *testing.T) {
	rules := rulesOf(t, render(t), "scute-move-target")
	for resource, verbs := range rules {
		if slices.Contains(verbs, "create") && !strings.HasPrefix(resource, "namespaces.") && !slices.Contains(rules[finalizers(resource)], "update") {
			t.Errorf("create is granted on %s, but update is not granted on %s", resource, finalizers(resource))
		}
	}
	if len(rules) < 200 {
		t.Errorf("got %d resources, want at least 200", len(rules))
	}
}

func finalizers(resource string) string {
	plural, group, _ := strings.Cut(resource, ".")
	return plural + "/finalizers." + group
}

// TestProvidersBringTheirKinds checks that the daemon has the rules of every ClusterRole with the label, whatever the
// name of the release.
func TestProvidersBringTheirKinds(t *testing.T) {
	for release, prefix := range map[string]string{"scute": "scute", "other": "other-scute"} {
		r := renderAs(t, release, "scute-system")
		i := slices.IndexFunc(r.clusterRoles, func(role rbacv1.ClusterRole) bool { return role.Name == prefix+"-providers" })
		if i < 0 {
			t.Fatalf("release %s has no ClusterRole %s-providers", release, prefix)
		}
		rule := r.clusterRoles[i].AggregationRule
		if rule == nil || len(rule.ClusterRoleSelectors) != 1 || rule.ClusterRoleSelectors[0].MatchLabels["scute.dev/aggregate-to-daemon"] != "true" || r.clusterRoles[i].Rules != nil {
			t.Errorf("ClusterRole = %+v", r.clusterRoles[i])
		}
		if !slices.ContainsFunc(r.bindings, func(b rbacv1.ClusterRoleBinding) bool {
			return b.RoleRef.Name == prefix+"-providers" && b.Subjects[0].Name == r.daemon().Spec.ServiceAccountName
		}) {
			t.Error("the ClusterRole is not bound to the daemon's account")
		}
	}
}

// TestBothInventoriesMayBeListed checks that each role that compares versions of providers may list both inventories.
func TestBothInventoriesMayBeListed(t *testing.T) {
	for _, role := range []string{"scute-daemon", "scute-move-target", "scute-remediator"} {
		rules := rulesOf(t, render(t), role)
		for _, resource := range []string{"providers.clusterctl.cluster.x-k8s.io", "coreproviders.operator.cluster.x-k8s.io", "infrastructureproviders.operator.cluster.x-k8s.io", "controlplaneproviders.operator.cluster.x-k8s.io"} {
			if !slices.Contains(rules[resource], "list") {
				t.Errorf("%s may not list %s", role, resource)
			}
		}
	}
}

// rulesOf returns the verbs of a ClusterRole by resource and group.
func rulesOf(t *testing.T, r rendered, name string) map[string][]string {
	t.Helper()
	verbs := make(map[string][]string)
	for _, role := range r.clusterRoles {
		if role.Name != name {
			continue
		}
		for _, rule := range role.Rules {
			for _, resource := range rule.Resources {
				verbs[resource+"."+rule.APIGroups[0]] = append(verbs[resource+"."+rule.APIGroups[0]], rule.Verbs...)
			}
		}
	}
	return verbs
}
