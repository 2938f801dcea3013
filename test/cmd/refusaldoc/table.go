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

// table has the rows of a kind. A list or an object with the same fields as an earlier one refers to it.
type table struct {
	rows []string
	as   map[string]string // the first path, by the properties of the object or of the items
}

// add writes the row of a field, and then the rows of the fields in it.
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
	if len(inner.Properties) > 1 {
		key, _ := json.Marshal(inner.Properties)
		var first string
		if first, again = t.as[string(key)]; again {
			refused = append(refused, "as `"+first+"`")
		} else {
			t.as[string(key)] = within
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

// fixed separates the name of a field from the remedy in the message of an immutability rule.
const fixed = " cannot be changed: "

// messages returns the messages of rules. Messages about fields with the same remedy are combined.
func messages(rules apiextensionsv1.ValidationRules) []string {
	var out []string
	at := make(map[string]int) // the index of the message with a remedy
	for _, rule := range rules {
		field, remedy, found := strings.Cut(rule.Message, fixed)
		i, again := at[remedy]
		switch {
		case found && again:
			out[i] = strings.Replace(out[i], fixed, "”, “"+field+fixed, 1)
		default:
			at[remedy] = len(out)
			out = append(out, message(rule))
		}
	}
	return out
}

func required(s *schema, name string) bool { return slices.Contains(s.Required, name) }

// kind describes the type of a field.
func kind(s *schema) string {
	switch {
	case s.Items != nil:
		return "list of " + kind(s.Items.Schema)
	case s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil:
		return "map of " + kind(s.AdditionalProperties.Schema)
	case s.Type == "":
		return "any"
	case isDuration(s):
		return "duration"
	case s.Format == "date-time":
		return "time"
	default:
		return s.Type
	}
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// durationPattern is the beginning of the pattern of api/v1alpha1.Duration.
const durationPattern = `^(0|([0-9]{1,5}`

func isDuration(s *schema) bool { return strings.HasPrefix(s.Pattern, durationPattern) }

// subdomainPattern is the pattern of object names.
const subdomainPattern = `^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`

// refusals describes what a schema refuses in addition to other types.
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
	if s.MaxLength != nil && !isDuration(s) {
		say("longer than %d", *s.MaxLength)
	}
	switch {
	case s.Pattern == subdomainPattern:
		say("not a DNS subdomain")
	case s.Pattern != "" && !isDuration(s):
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
	return append(out, messages(s.XValidations)...)
}
