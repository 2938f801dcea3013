package transfer

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"scute.dev/kube/object"
)

const tooLong = "ten characters and more"

// addMany adds n Machines with a finalizer to the source, one with an ID that is too long for the schema, and n
// Secrets.
func addMany(f *fakes, n int) {
	owner := []any{obj{"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "a", "uid": string(f.src.get(f.cluster).GetUID())}}
	meta := func(finalizers ...any) obj {
		return obj{"labels": obj{"cluster.x-k8s.io/cluster-name": "a"}, "ownerReferences": owner, "finalizers": finalizers}
	}
	for i := range n {
		id := "short"
		if i == 7 {
			id = tooLong
		}
		f.src.put(capi("Machine", fmt.Sprintf("m-%02d", i)), obj{
			"metadata": meta("machine.cluster.x-k8s.io"), "spec": obj{"providerID": id}, "status": obj{"nodeRef": obj{"name": "n"}},
		})
		f.src.put(object.Ref{Kind: "Secret", Namespace: "fleet", Name: fmt.Sprintf("s-%02d", i)}, obj{"metadata": meta()})
	}
}

// machines is the CustomResourceDefinition of Machines.
var machines = object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "machines.cluster.x-k8s.io"}

// define adds a validation rule and subresources to the definition of Machines.
func (f *fakeAPI) define(rule, subresources obj) {
	version := f.get(machines).Object["spec"].(obj)["versions"].([]any)[0].(obj)
	if rule != nil {
		version["schema"].(obj)["openAPIV3Schema"].(obj)["x-kubernetes-validations"] = []any{rule}
	}
	version["subresources"] = subresources
	f.merge(machines, obj{"spec": obj{"versions": []any{version}}})
}

// schema sets the schema and the conversion strategy of Machines.
func (f *fakeAPI) schema(longest int, conversion string) {
	text := obj{"type": "string", "maxLength": longest}
	f.merge(machines, obj{"spec": obj{
		"conversion": obj{"strategy": conversion},
		"versions": []any{
			obj{"name": "v1beta2", "schema": obj{"openAPIV3Schema": obj{"type": "object", "properties": obj{
				"spec":   obj{"type": "object", "properties": obj{"providerID": text}},
				"status": obj{"type": "object", "x-kubernetes-preserve-unknown-fields": true},
			}}}},
		},
	}})
}

func rule(operation, group, resource string) obj {
	return obj{"operations": []any{operation}, "apiGroups": []any{group}, "apiVersions": []any{"v1"}, "resources": []any{resource}}
}

func (f *fakeAPI) webhook(operation, group, resource string) {
	f.put(object.Ref{Group: "admissionregistration.k8s.io", Kind: "ValidatingWebhookConfiguration", Name: "guard"},
		obj{"webhooks": []any{obj{"name": "guard.example.com", "rules": []any{rule(operation, group, resource)}}}})
}

func (f *fakeAPI) policy(operation, group, resource string) {
	f.put(object.Ref{Group: "admissionregistration.k8s.io", Kind: "ValidatingAdmissionPolicy", Name: "guard"},
		obj{"spec": obj{"matchConstraints": obj{"resourceRules": []any{rule(operation, group, resource)}}}})
}

func unreadable(plural string) func(*http.Request) string {
	return func(r *http.Request) string {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/"+plural) {
			return "it may not be read"
		}
		return ""
	}
}

// unreadableSchema denies reads of a single definition, but not the list of all.
func unreadableSchema(r *http.Request) string {
	if r.URL.Query().Has("fieldSelector") {
		return "it may not be read"
	}
	return ""
}

// tryCounts counts dry runs.
type tryCounts struct{ machines, secrets int }

// TestWhatMayBeRefusedIsTried checks that the preflight makes a dry run for each object that something may refuse, and
// for one object of each other kind. There are 21 Machines, one of which does not match the schema, and 20 Secrets.
func TestWhatMayBeRefusedIsTried(t *testing.T) {
	const core = "cluster.x-k8s.io"
	one := tryCounts{1, 1}
	for name, c := range map[string]struct {
		prepare                    func(f *fakes)
		created, released, deleted tryCounts
	}{
		"nothing refuses":              {func(*fakes) {}, tryCounts{2, 1}, tryCounts{2, 0}, one},
		"a schema with room":           {func(f *fakes) { f.src.schema(99, "None"); f.dst.schema(99, "None") }, one, tryCounts{1, 0}, one},
		"another schema on the target": {func(f *fakes) { f.dst.schema(3, "None") }, tryCounts{21, 1}, tryCounts{2, 0}, one},
		"versions are converted":       {func(f *fakes) { f.dst.schema(99, "Webhook") }, tryCounts{21, 1}, tryCounts{2, 0}, one},
		"a rule about what was stored": {func(f *fakes) {
			f.src.define(obj{"rule": "oldSelf.spec.providerID != 'short'"}, nil)
		}, tryCounts{2, 1}, tryCounts{21, 0}, one},
		"unknown fields are kept": {func(f *fakes) {
			f.dst.merge(machines, obj{"spec": obj{"preserveUnknownFields": true}})
		}, tryCounts{21, 1}, tryCounts{2, 0}, one},
		"replicas that a Scale cannot say": {func(f *fakes) {
			f.dst.define(nil, obj{"scale": obj{"specReplicasPath": ".spec.providerID", "statusReplicasPath": ".status.replicas"}})
		}, tryCounts{21, 1}, tryCounts{2, 0}, one},
		"no schema is known": {func(f *fakes) {
			for _, api := range []*fakeAPI{f.src, f.dst} {
				api.merge(machines, obj{"spec": nil})
			}
		}, tryCounts{21, 1}, tryCounts{21, 0}, one},
		"a webhook of creations":      {func(f *fakes) { f.dst.webhook("CREATE", core, "machines") }, tryCounts{21, 1}, tryCounts{2, 0}, one},
		"a webhook of all operations": {func(f *fakes) { f.dst.webhook("*", "*", "*/*") }, tryCounts{21, 20}, tryCounts{2, 0}, one},
		"a webhook of updates":        {func(f *fakes) { f.src.webhook("UPDATE", core, "*") }, tryCounts{2, 1}, tryCounts{21, 0}, one},
		"a webhook of deletions":      {func(f *fakes) { f.src.webhook("DELETE", "", "secrets") }, tryCounts{2, 1}, tryCounts{2, 0}, tryCounts{1, 20}},
		"a webhook of a subresource":  {func(f *fakes) { f.dst.webhook("CREATE", core, "machines/status") }, tryCounts{2, 1}, tryCounts{2, 0}, one},
		"a policy":                    {func(f *fakes) { f.dst.policy("CREATE", "", "secrets") }, tryCounts{2, 20}, tryCounts{2, 0}, one},
		"a policy of deletions":       {func(f *fakes) { f.src.policy("DELETE", core, "machines") }, tryCounts{2, 1}, tryCounts{2, 0}, tryCounts{21, 1}},
		"a quota":                     {func(f *fakes) { f.dst.put(object.Ref{Kind: "ResourceQuota", Namespace: "fleet", Name: "q"}, nil) }, tryCounts{21, 20}, tryCounts{2, 0}, one},
		"a quota elsewhere":           {func(f *fakes) { f.dst.put(object.Ref{Kind: "ResourceQuota", Namespace: "other", Name: "q"}, nil) }, tryCounts{2, 1}, tryCounts{2, 0}, one},
		"a namespace that is going": {func(f *fakes) {
			f.dst.merge(object.Ref{Kind: "Namespace", Name: "fleet"}, obj{"metadata": obj{"deletionTimestamp": "2026-01-01T00:00:00Z"}})
		}, tryCounts{21, 20}, tryCounts{2, 0}, one},
		"a name that is taken":          {func(f *fakes) { f.dst.put(object.Ref{Kind: "Secret", Namespace: "fleet", Name: "s-09"}, nil) }, tryCounts{2, 2}, tryCounts{2, 0}, one},
		"webhooks that are not shown":   {func(f *fakes) { f.dst.deny = unreadable("validatingwebhookconfigurations") }, tryCounts{21, 20}, tryCounts{2, 0}, one},
		"policies that are not shown":   {func(f *fakes) { f.src.deny = unreadable("validatingadmissionpolicies") }, tryCounts{2, 1}, tryCounts{21, 0}, tryCounts{21, 20}},
		"quotas that are not shown":     {func(f *fakes) { f.dst.deny = unreadable("resourcequotas") }, tryCounts{21, 20}, tryCounts{2, 0}, one},
		"another authorizer":            {func(f *fakes) { f.src.incomplete = true }, tryCounts{2, 1}, tryCounts{21, 0}, tryCounts{21, 20}},
		"another one on the target":     {func(f *fakes) { f.dst.incomplete = true }, tryCounts{21, 20}, tryCounts{2, 0}, one},
		"definitions that are not read": {func(f *fakes) { f.dst.deny = unreadableSchema }, tryCounts{21, 1}, tryCounts{2, 0}, one},
	} {
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			var created, released, deleted tryCounts
			count := func(r *http.Request) {
				if r.URL.Query().Get("dryRun") == "" {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				n := map[string]*tryCounts{http.MethodPost: &created, http.MethodPatch: &released, http.MethodDelete: &deleted}[r.Method]
				switch {
				case strings.Contains(r.URL.Path+"/", "/machines/"):
					n.machines++
				case strings.Contains(r.URL.Path, "/secrets"):
					n.secrets++
				}
			}
			preflighted(t, func(f *fakes, _ object.Ref) {
				addMany(f, 20)
				f.src.schema(10, "None")
				f.dst.schema(10, "None")
				c.prepare(f)
				f.src.hook, f.dst.hook = count, count
			}, nil)
			if created != c.created || released != c.released || deleted != c.deleted {
				t.Errorf("created %v, released %v, deleted %v, want %v, %v, %v", created, released, deleted, c.created, c.released, c.deleted)
			}
		})
	}
}
