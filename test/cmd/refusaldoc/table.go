package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

type schema = apiextensionsv1.JSONSchemaProps

// table of a kind. A list whose items are like those of an earlier one refers to it.
type table struct {
	rows []string
	as   map[string]string // the first path, by the items' properties
}

// add writes a field, and then what is in it.
func (t *table) add(path string, s *schema, needed bool) {
	refused := refusals(s)
	if needed {
		refused = append([]string{"missing"}, refused...)
	}
	inner, within := s, path
	if s.Items != nil {
		inner, within = s.Items.Schema, path+"[]"
		if of := refusals(inner); len(of) > 0 {
			refused = append(refused, "an item: "+strings.Join(of, ", "))
		}
	}
	again := false
	if s.Items != nil && len(inner.Properties) > 0 {
		key, _ := json.Marshal(inner.Properties)
		var first string
		if first, again = t.as[string(key)]; again {
			refused = append(refused, "items as of `"+first+"`")
		} else {
			t.as[string(key)] = path
		}
	}
	if len(refused) > 0 || len(inner.Properties) == 0 {
		t.row(path, kind(s), refused...)
	}
	if again {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(inner.Properties)) {
		p := inner.Properties[name]
		t.add(within+"."+name, &p, required(inner, name))
	}
}

func (t *table) row(path, kind string, refused ...string) {
	t.rows = append(t.rows, "| `"+path+"` | "+kind+" | "+strings.ReplaceAll(strings.Join(refused, "; "), "|", `\|`)+" |")
}

func message(rule apiextensionsv1.ValidationRule) string { return "“" + rule.Message + "”" }

func required(s *schema, name string) bool { return slices.Contains(s.Required, name) }

// kind is the type of a field in words.
func kind(s *schema) string {
	switch {
	case s.Items != nil:
		return "list of " + kind(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + kind(s.AdditionalProperties.Schema)
	case s.Type == "":
		return "any"
	default:
		return s.Type
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// durationPattern begins that of api/v1alpha1.Duration.
const durationPattern = `^(0|([0-9]{1,5}`

// refusals are what a schema refuses beside another type, in words.
func refusals(s *schema) []string {
	var out []string
	say := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if len(s.Enum) > 0 {
		var values []string
		for _, v := range s.Enum {
			values = append(values, "`"+strings.Trim(string(v.Raw), `"`)+"`")
		}
		say("other than %s", strings.Join(values, ", "))
	}
	if s.MinLength != nil && *s.MinLength == 1 {
		say("empty")
	} else if s.MinLength != nil {
		say("shorter than %d", *s.MinLength)
	}
	if s.MaxLength != nil {
		say("longer than %d", *s.MaxLength)
	}
	switch {
	case strings.HasPrefix(s.Pattern, durationPattern):
		say("not a duration such as `90s`, `5m` or `1h30m`")
	case s.Format == "date-time":
		say("not a time such as `2026-01-31T18:00:00Z`")
	case s.Pattern != "":
		say("not of the form `%s`", s.Pattern)
	}
	if s.Minimum != nil {
		say("less than %s", number(*s.Minimum))
	}
	if s.Maximum != nil {
		say("more than %s", number(*s.Maximum))
	}
	if s.MaxItems != nil {
		say("more than %d items", *s.MaxItems)
	}
	if s.MaxProperties != nil {
		say("more than %d entries", *s.MaxProperties)
	}
	if s.XListType != nil && *s.XListType == "set" {
		say("an item twice")
	}
	if s.XListType != nil && *s.XListType == "map" {
		say("two items of one `%s`", strings.Join(s.XListMapKeys, ", "))
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		if of := refusals(s.AdditionalProperties.Schema); len(of) > 0 {
			say("a value: %s", strings.Join(of, ", "))
		}
	}
	for _, rule := range s.XValidations {
		say("%s", message(rule))
	}
	return out
}
