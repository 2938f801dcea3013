package catalog

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// notMoved is the group of ExtensionConfig, which is not moved. The chart's roles already grant list on it.
const notMoved = "runtime.cluster.x-k8s.io"

// rule is a rule of the chart's value.
type rule struct {
	group     string
	resources []string
}

// rules returns the resources of a provider by group.
func (p Provider) rules() []rule {
	var list []rule
	for _, d := range p.Definitions {
		if d.Spec.Group == notMoved {
			continue
		}
		i := slices.IndexFunc(list, func(r rule) bool { return r.group == d.Spec.Group })
		if i < 0 {
			i, list = len(list), append(list, rule{group: d.Spec.Group})
		}
		list[i].resources = append(list[i].resources, d.Spec.Names.Plural)
	}
	slices.SortFunc(list, func(a, b rule) int { return cmp.Compare(a.group, b.group) })
	return list
}

// Rewrite replaces the value `providers` in the text of the chart's values.yaml.
func Rewrite(values []byte, providers []Provider) ([]byte, error) {
	const begin, end = "\nproviders:\n", "\n\nresources:\n"
	from, to := bytes.Index(values, []byte(begin)), bytes.Index(values, []byte(end))
	if from < 0 || to < from {
		return nil, errors.New("values.yaml has no value providers before resources")
	}
	var text strings.Builder
	text.WriteString(begin)
	for _, p := range providers {
		fmt.Fprintf(&text, "  %s:\n", p.Name)
		for _, r := range p.rules() {
			slices.Sort(r.resources)
			fmt.Fprintf(&text, "    - group: %s\n      resources:\n        - %s\n", r.group, strings.Join(r.resources, "\n        - "))
		}
	}
	return slices.Concat(values[:from], []byte(strings.TrimSuffix(text.String(), "\n")), values[to:]), nil
}
