package kube

import (
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
)

func TestRulesGrantOnlyWhatTheySay(t *testing.T) {
	rules := Rules{namespace: "fleet", granted: []authorizationv1.ResourceRule{
		{Verbs: []string{"get", "list"}, APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machines"}},
		{Verbs: []string{"delete"}, APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machines"}, ResourceNames: []string{"a"}},
		{Verbs: []string{"patch"}, APIGroups: []string{"cluster.x-k8s.io"}, Resources: []string{"machines/status"}},
		{Verbs: []string{"*"}, APIGroups: []string{"*"}, Resources: []string{"clusters"}},
		{Verbs: []string{"watch"}, APIGroups: []string{""}, Resources: []string{"*"}},
	}}
	machines := Type{Group: "cluster.x-k8s.io", Plural: "machines", Namespaced: true}
	secrets := Type{Plural: "secrets", Namespaced: true}
	for name, c := range map[string]struct {
		rules     Rules
		verb      string
		of        Type
		namespace string
		want      bool
	}{
		"granted":                     {rules, "list", machines, "fleet", true},
		"another verb":                {rules, "create", machines, "fleet", false},
		"of one name":                 {rules, "delete", machines, "fleet", false},
		"of a subresource":            {rules, "patch", machines, "fleet", false},
		"in another namespace":        {rules, "list", machines, "other", false},
		"another group":               {rules, "list", Type{Group: "machine.example.org", Plural: "machines", Namespaced: true}, "fleet", false},
		"every verb in every group":   {rules, "patch", Type{Group: "cluster.x-k8s.io", Plural: "clusters", Namespaced: true}, "fleet", true},
		"of the whole cluster":        {rules, "patch", Type{Group: "cluster.x-k8s.io", Plural: "clusters"}, "fleet", false},
		"every resource":              {rules, "watch", secrets, "fleet", true},
		"nothing is known":            {Rules{}, "list", machines, "fleet", false},
		"nothing is known of no name": {Rules{}, "list", machines, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := c.rules.Grants(c.verb, c.of, c.namespace); got != c.want {
				t.Errorf("Grants = %v, want %v", got, c.want)
			}
		})
	}
}
