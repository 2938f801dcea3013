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

const maxTextLength = 256

func notices(of []v1alpha1.RepairNotice) []remediator.Notice {
	var list []remediator.Notice
	for _, n := range of {
		one := remediator.Notice{Type: n.Type, Key: n.Key, Value: n.Value, Timed: n.LeadTime != nil, Lead: n.LeadTime.Or(0)}
		if n.Type == v1alpha1.NoticeNodeCondition {
			one.Value = cmp.Or(one.Value, string(object.True))
		}
		list = append(list, one)
	}
	return list
}

func keysOf(notices []remediator.Notice, on v1alpha1.NoticeType) []string {
	var keys []string
	for _, n := range notices {
		if n.Type == on {
			keys = append(keys, n.Key)
		}
	}
	return keys
}

func (l *observation) notices(context.Context) error {
	for _, key := range keysOf(l.facts.Policy.Checks.Notices, v1alpha1.NoticeMachineAnnotation) {
		for i, m := range l.found {
			if value, there := m.Annotations[key]; there {
				l.facts.Machines[i].Annotations = addValue(l.facts.Machines[i].Annotations, key, value)
			}
		}
	}
	return nil
}

func addValue(values map[string]string, key, value string) map[string]string {
	if values == nil {
		values = make(map[string]string)
	}
	values[key] = object.Truncate(value, maxTextLength)
	return values
}

// notable reports whether the cache keeps an annotation of a Machine. Any policy may name it.
func notable(key, value string) bool {
	return len(value) <= maxTextLength && key != corev1.LastAppliedConfigAnnotation
}

// selectedAnnotations decodes only the annotations whose keys are in keys.
type selectedAnnotations struct {
	keys  []string
	found map[string]string
}

// UnmarshalJSON decodes the annotations with the selected keys.
func (t *selectedAnnotations) UnmarshalJSON(raw []byte) error {
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
			return fmt.Errorf("annotation %v: %w", key, err)
		}
		if name, ok := key.(string); ok && slices.Contains(t.keys, name) {
			t.found = addValue(t.found, name, value)
		}
	}
	return nil
}
