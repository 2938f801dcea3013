package apply

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/evanphx/json-patch/v5"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/workflow/task"
	"scute.dev/workflow/task/access"
)

// record is what Apply records before it acts. It grows from attempt to attempt; what an earlier one said about how
// an object was found is never overwritten by what a later one finds.
type record struct {
	Cluster access.Pinned  `json:"cluster,omitzero"`
	Objects []*recordEntry `json:"objects"`
}

// recordEntry is how one object was found.
type recordEntry struct {
	access.ObjectRef
	// Created: it was not there, and is going to be created.
	Created bool `json:"created,omitempty"`
	// UID of an object that was there.
	UID types.UID `json:"uid,omitempty"`
	// Before is the merge patch that puts the changed fields back; empty if nothing was to be changed. After has the same
	// fields with fingerprints of what they are changed to: enough to tell whether they still are as the task left them.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Planned: After is of a dry run, which does not allocate ports, for example. What the API server answers to the write takes its place.
	Planned bool `json:"planned,omitempty"`
	// Managed: scute owned fields of it before. If it did not, the undo gives the ownership back.
	Managed bool `json:"managed,omitempty"`
	// Withheld: it is changed, and why its earlier state is not recorded.
	Withheld string `json:"withheld,omitempty"`
}

func (e *recordEntry) changed() bool { return len(e.Before) > 0 || e.Withheld != "" }

func (e *recordEntry) action() string {
	switch {
	case e.Created:
		return actionCreated
	case e.changed():
		return actionChanged
	default:
		return actionNone
	}
}

func (r *record) find(ref access.ObjectRef) *recordEntry {
	for _, e := range r.Objects {
		if e.Plain() == ref.Plain() {
			return e
		}
	}
	return nil
}

// adopted says that every object was there and nothing must be changed.
func (r *record) adopted() bool {
	for _, e := range r.Objects {
		if e.action() != actionNone {
			return false
		}
	}
	return true
}

// entry is the entry of an object, made if there is none.
func (r *record) entry(ref access.ObjectRef) *recordEntry {
	if e := r.find(ref); e != nil {
		return e
	}
	e := &recordEntry{ObjectRef: ref}
	r.Objects = append(r.Objects, e)
	return e
}

// change notes that an object is going to be changed from live to then.
func (r *record) change(e *recordEntry, live, then *unstructured.Unstructured) error {
	if e.Withheld != "" {
		return nil
	}
	if e.IsSecret() {
		e.Withheld = access.WithheldSecret
		return nil
	}
	from, err := json.Marshal(access.ContentOf(live))
	if err != nil {
		return fmt.Errorf("recording %s: %w", e, err)
	}
	to, err := json.Marshal(access.ContentOf(then))
	if err != nil {
		return fmt.Errorf("recording %s: %w", e, err)
	}
	before, err := jsonpatch.CreateMergePatch(to, from)
	if err != nil {
		return fmt.Errorf("recording %s: %w", e, err)
	}
	after, err := jsonpatch.CreateMergePatch(from, to)
	if err == nil {
		after, err = fingerprints(after)
	}
	if err != nil {
		return fmt.Errorf("recording %s: %w", e, err)
	}
	if len(e.Before) > 0 { // changed by an earlier attempt: how it was before that one is what counts
		if before, err = jsonpatch.MergeMergePatches(before, e.Before); err == nil {
			after, err = jsonpatch.MergeMergePatches(e.After, after)
		}
		if err != nil {
			return fmt.Errorf("recording %s: %w", e, err)
		}
	}
	if r.size()+len(before)+len(after)-len(e.Before)-len(e.After) > access.RecordLimit {
		e.Before, e.After, e.Withheld = nil, nil, access.WithheldSize
		return nil
	}
	e.Before, e.After, e.Planned = before, after, true
	return nil
}

// wrote records what the API server has made of a change, and reports whether there is something new to record.
func (r *record) wrote(item *workItem, u *unstructured.Unstructured) (changed bool, err error) {
	e := r.find(item.ref)
	if e == nil || len(e.Before) == 0 {
		return false, nil
	}
	err = r.change(e, item.live, u)
	e.Planned = false
	return true, err
}

// removed returns the paths of the fields that scute has set in an object and that a manifest does not have: applying it removes them. Of a list it
// returns nothing.
func removed(live, want *unstructured.Unstructured) []string {
	for _, e := range live.GetManagedFields() {
		var owned map[string]any
		if ownEntry(e) && e.FieldsV1 != nil && json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) == nil {
			return lacking(owned, want.Object, "")
		}
	}
	return nil
}

// lacking returns the fields of a set (FieldsV1) that an object does not have.
func lacking(owned, object map[string]any, path string) (fields []string) {
	for _, key := range slices.Sorted(maps.Keys(owned)) {
		name, isField := strings.CutPrefix(key, "f:")
		if !isField {
			continue
		}
		value, there := object[name]
		below, _ := owned[key].(map[string]any)
		inside, isObject := value.(map[string]any)
		switch {
		case !there:
			fields = append(fields, path+name)
		case isObject:
			fields = append(fields, lacking(below, inside, path+name+".")...)
		}
	}
	return fields
}

// fingerprints replaces the values of a merge patch.
func fingerprints(patch []byte) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fingerprint(fields))
}

// fingerprint keeps the shape of a value and makes its leaves unreadable: what is applied may come from a Secret. It is
// so short that a value cannot be told from it by trying.
func fingerprint(value any) any {
	switch value := value.(type) {
	case nil:
		return nil
	case map[string]any:
		fields := make(map[string]any, len(value))
		for name, v := range value {
			fields[name] = fingerprint(v)
		}
		return fields
	default:
		data, err := json.Marshal(value)
		if err != nil {
			data = fmt.Append(nil, value)
		}
		return task.Hash(string(data))[:8]
	}
}

func (r *record) size() (n int) {
	for _, e := range r.Objects {
		n += len(e.Before) + len(e.After)
	}
	return n
}
