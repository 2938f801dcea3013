package chart_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"sigs.k8s.io/yaml"
)

// The command of the guide renders the role for targets alone, under the name that the guide binds.
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
