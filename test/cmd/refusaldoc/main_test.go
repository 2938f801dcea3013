package main

import (
	"os"
	"strings"
	"testing"

	"scute.dev/config/crd"
)

// TestPage checks that the page has every rule of every definition, including the one for an object's name, and
// readable numbers.
func TestPage(t *testing.T) {
	const folder = "../../../config/crd"
	var page strings.Builder
	if err := run(&page, folder); err != nil {
		t.Fatal(err)
	}
	all, err := crd.Definitions(os.DirFS(folder))
	if err != nil {
		t.Fatal(err)
	}
	rules := 0
	var look func(s *schema)
	look = func(s *schema) {
		for _, rule := range s.XValidations {
			rules++
			field, remedy, _ := strings.Cut(rule.Message, fixed) // other fields have the same remedy
			if !strings.Contains(page.String(), "“"+field) || !strings.Contains(page.String(), remedy+"”") {
				t.Errorf("the page lacks %q", rule.Message)
			}
		}
		if s.Items != nil {
			look(s.Items.Schema)
		}
		for name, p := range s.Properties {
			if name != "status" {
				look(&p)
			}
		}
	}
	for _, definition := range all {
		look(definition.Spec.Versions[0].Schema.OpenAPIV3Schema)
	}
	if rules < 60 {
		t.Errorf("%d rules, want at least 60", rules)
	}
	for _, want := range []string{
		"| `metadata` | object | “the only RepairLimits must have the name default” |",
		"| `spec.etcd.defragmentation.minSizeMiB` | integer | less than 1; more than 1048576 |",
	} {
		if !strings.Contains(page.String(), want+"\n") {
			t.Errorf("the page lacks the line %s", want)
		}
	}
}
