package api

import (
	"encoding/json"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
)

// texts returns strings, at least one of which matches each pattern of a field.
func texts() []string {
	return []string{"a", "5m", "A", value, "2026-01-31T18:00:00Z", ".status", "age1a", "@daily", "https://s3.example.com"}
}

// nonsense returns strings, several of which violate any pattern, format or enumeration, and strings that break
// parsers.
func nonsense() []string {
	return []string{
		"", " ", "?", "a b", "-a", "Ä", "a\nb", "../a", "1d", "-5m", "+5m", "5", "5 minutes", ".5s", "1.s", "9999999h", "99999999999999999999s", "1e3s", "0s", "0",
		"2026-01-31", "2026-02-30T00:00:00Z", "2026-01-31t18:00:00z", "2026-01-31T24:00:00Z", "2026-01-31T18:00:60Z", "2026-01-31T18:00:00+99:99", "10000-01-01T00:00:00Z",
		"true", "null", "SUCCESS",
	}
}

// unlikely returns the strings of nonsense that are also tried in specs whose schema accepts any text.
func unlikely() []string { return []string{"a b", "a\nb", "../a"} }

// valid returns the simplest value that the schema accepts.
func valid(s *schema) any {
	switch {
	case s.Default != nil:
		return decoded(s.Default.Raw)
	case len(s.Enum) > 0:
		return decoded(s.Enum[0].Raw)
	}
	switch s.Type {
	case "object":
		return required(s)
	case "array":
		list := []any{}
		if s.MinItems != nil {
			for range *s.MinItems {
				list = append(list, valid(s.Items.Schema))
			}
		}
		return list
	case "boolean":
		return true
	case "integer", "number":
		if s.Minimum != nil {
			return *s.Minimum
		}
		return int64(1)
	case "string":
		i := slices.IndexFunc(texts(), func(text string) bool { return takes(s, text) })
		if i < 0 {
			panic(fmt.Sprintf("texts has none for the pattern %q and the format %q: add one", s.Pattern, s.Format))
		}
		return texts()[i]
	default: // any value is accepted
		return "a"
	}
}

// required returns an object with its required fields.
func required(s *schema) map[string]any {
	o := make(map[string]any)
	for _, name := range s.Required {
		p := s.Properties[name]
		o[name] = valid(&p)
	}
	return o
}

func takes(s *schema, text string) bool {
	return (s.Format != "date-time" || strings.HasSuffix(text, "Z")) && (s.Pattern == "" || regexp.MustCompile(s.Pattern).MatchString(text))
}

// wrong returns values that a field should not have, by what is wrong with them.
func wrong(f field) map[string]any {
	s := f.schema
	all := map[string]any{"null": nil}
	if f.required {
		all["missing"] = absent
	}
	for kind, v := range map[string]any{"a string": "a", "a number": int64(7), "a fraction": 1.5, "a boolean": true, "a list": []any{}, "a list of a list": []any{[]any{}}, "an object": map[string]any{"unknown": map[string]any{}}} {
		if !is(s.Type, v) {
			all[kind] = v
		}
	}
	switch s.Type {
	case "string":
		for _, text := range nonsense() {
			name := s.Pattern == "" && f.path[0] == "spec" && slices.Contains(unlikely(), text)
			if len(s.Enum) > 0 || s.Pattern != "" && !takes(s, text) || s.Format != "" || text == "" || name {
				all[fmt.Sprintf("%q", text)] = text
			}
		}
		for _, v := range s.XValidations {
			if strings.Contains(v.Rule, "<= duration('8760h')") {
				all["longer than a year"] = "8761h"
			}
		}
		if s.MaxLength != nil {
			for _, text := range texts() {
				if takes(s, text) {
					all["too long, of "+text] = stretched(s, text, int(*s.MaxLength)+1)
				}
			}
		}
	case "integer", "number":
		for what, v := range map[string]float64{"0": 0, "-1": -1, "2^31": 1 << 31, "-2^31-1": -1<<31 - 1, "2^63": 1 << 63, "1e300": 1e300, "-1e300": -1e300} {
			all[what] = v
		}
		if s.Minimum != nil {
			all["below the minimum"] = *s.Minimum - 1
		}
		if s.Maximum != nil {
			all["above the maximum"] = *s.Maximum + 1
		}
	case "array":
		one := valid(s.Items.Schema)
		all["a list of null"] = []any{nil}
		if kind := s.XListType; kind != nil && *kind != "atomic" {
			all["twice the same"] = []any{one, one}
		}
		if s.MaxItems != nil {
			all["too many"] = slices.Repeat([]any{one}, int(*s.MaxItems)+1)
		}
	case "object":
		if s.MaxProperties != nil {
			many := make(map[string]any)
			for i := range *s.MaxProperties + 1 {
				many[fmt.Sprintf("%s%d", value, i)] = valid(s.AdditionalProperties.Schema)
			}
			all["too many"] = many
		}
		if s.AdditionalProperties != nil {
			for _, key := range nonsense() {
				all[fmt.Sprintf("the key %q", key)] = map[string]any{key: valid(s.AdditionalProperties.Schema)}
			}
		}
		if len(s.Required) > 0 {
			all["empty"] = map[string]any{}
		}
	}
	return all
}

// is reports whether a value has a JSON type. Any value matches the empty type.
func is(kind string, v any) bool {
	switch v := v.(type) {
	case string:
		return kind == "string" || kind == ""
	case int64:
		return kind == "integer" || kind == "number"
	case float64:
		return kind == "number" || kind == "integer" && v == math.Trunc(v)
	case bool:
		return kind == "boolean"
	case []any:
		return kind == "array"
	default:
		return kind == "object"
	}
}

// stretched returns a text with a length. If the pattern allows, it differs from a valid one only in its length.
func stretched(s *schema, text string, length int) string {
	for _, filler := range []string{text, "a", "0"} {
		long := text + strings.Repeat(filler, length)
		if cut := long[:length]; takes(s, cut) {
			return cut
		}
	}
	return strings.Repeat("a", length)
}

func decoded(raw []byte) (v any) {
	if err := json.Unmarshal(raw, &v); err != nil {
		panic(err) // of a CRD that the API server serves
	}
	return v
}
