package main

import (
	"os"
	"strings"
	"testing"

	"scute.dev/internal/crd"
)

// TestPage: every rule of every definition is on the page, that of an object's name too, and numbers are as one writes them.
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
			field, remedy, _ := strings.Cut(rule.Message, fixed) // which other fields share
			if !strings.Contains(page.String(), "“"+field) || !strings.Contains(page.String(), remedy+"”") {
				t.Errorf("it does not have %q", rule.Message)
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
		t.Errorf("%d rules were looked for: the test looks in the wrong place", rules)
	}
	for _, want := range []string{
		"| `metadata` | object | “there is one RepairLimits, and its name is default” |",
		"| `spec.etcd.defragmentation.minSizeMiB` | integer | less than 1; more than 1048576 |",
	} {
		if !strings.Contains(page.String(), want+"\n") {
			t.Errorf("it has no line %s", want)
		}
	}
}
