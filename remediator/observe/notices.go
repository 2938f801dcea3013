package observe

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"

	"scute.dev/api/v1alpha1"
	"scute.dev/kube/object"
	"scute.dev/remediator"
)

// longestText is how long the value of an annotation may be that is kept.
const longestText = 256

// notices are those of a policy, with their defaults in place.
func notices(of []v1alpha1.RepairNotice) []remediator.Notice {
	var list []remediator.Notice
	for _, n := range of {
		one := remediator.Notice{Type: n.Type, Key: n.Key, Value: n.Value, Timed: n.LeadTime != nil, Lead: duration(n.LeadTime, 0)}
		if n.Type == v1alpha1.NoticeNodeCondition {
			one.Value = cmp.Or(one.Value, string(object.True))
		}
		list = append(list, one)
	}
	return list
}

// keysOf are the keys of the notices in one place.
func keysOf(notices []remediator.Notice, on v1alpha1.NoticeType) []string {
	var keys []string
	for _, n := range notices {
		if n.Type == on {
			keys = append(keys, n.Key)
		}
	}
	return keys
}

// notices fills what the Machines say, where the policy asks for it.
func (l *look) notices(context.Context) error {
	for _, key := range keysOf(l.facts.Policy.Checks.Notices, v1alpha1.NoticeMachineAnnotation) {
		for i, m := range l.found {
			if value, there := m.Annotations[key]; there {
				l.facts.Machines[i].Annotations = with(l.facts.Machines[i].Annotations, key, value)
			}
		}
	}
	return nil
}

// with adds a value to a map, of which it keeps a bounded part.
func with(values map[string]string, key, value string) map[string]string {
	if values == nil {
		values = make(map[string]string)
	}
	values[key] = object.Brief(value, longestText)
	return values
}

// notable annotations of a Machine are kept for notices: any policy may name one.
func notable(key, value string) bool {
	return len(value) <= longestText && key != corev1.LastAppliedConfigAnnotation
}

// texts are those annotations of an object that are named; the others take no room.
type texts struct {
	of    []string
	found map[string]string
}

// UnmarshalJSON reads annotations.
func (t *texts) UnmarshalJSON(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	if first, err := d.Token(); err != nil || first != json.Delim('{') {
		return err // null
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		var value string
		if err := d.Decode(&value); err != nil {
			return fmt.Errorf("the annotation %v: %w", key, err)
		}
		if name, ok := key.(string); ok && slices.Contains(t.of, name) {
			t.found = with(t.found, name, value)
		}
	}
	return nil
}
