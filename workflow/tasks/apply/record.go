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

// record is what Apply records before it acts. Later attempts add to it, but keep the state in
// which an earlier attempt found an object.
type record struct {
	Cluster access.Pinned  `json:"cluster,omitzero"`
	Objects []*recordEntry `json:"objects"`
}

type recordEntry struct {
	access.ObjectRef
	// Created is set if the object did not exist, so that the task creates it.
	Created bool `json:"created,omitempty"`
	// UID is the UID of the object if it already existed.
	UID types.UID `json:"uid,omitempty"`
	// Before is the merge patch that restores the changed fields. After contains fingerprints of the
	// new values. With them, the undo checks whether a field still has the value that the task set.
	Before json.RawMessage `json:"before,omitempty"`
	After  json.RawMessage `json:"after,omitempty"`
	// Planned is set while After is from a dry run. A dry run does not set all values; for example, it
	// allocates no ports.
	Planned bool `json:"planned,omitempty"`
	// Managed is set if scute owned fields of the object before. If it is not set, the undo releases
	// scute's ownership.
	Managed bool `json:"managed,omitempty"`
	// Withheld is the reason why the earlier state of a changed object is not recorded.
	Withheld string `json:"withheld,omitempty"`
}

func (e *recordEntry) isChanged() bool { return len(e.Before) > 0 || e.Withheld != "" }

func (e *recordEntry) action() string {
	switch {
	case e.Created:
		return actionCreated
	case e.isChanged():
		return actionChanged
	default:
		return actionNone
	}
}

func (r *record) find(ref access.ObjectRef) *recordEntry {
	for _, e := range r.Objects {
		if e.Ref() == ref.Ref() {
			return e
		}
	}
	return nil
}

func (r *record) isAdopted() bool {
	return !slices.ContainsFunc(r.Objects, func(e *recordEntry) bool { return e.action() != actionNone })
}

// entry returns the entry of an object. If there is none, it adds one.
func (r *record) entry(ref access.ObjectRef) *recordEntry {
	if e := r.find(ref); e != nil {
		return e
	}
	e := &recordEntry{ObjectRef: ref}
	r.Objects = append(r.Objects, e)
	return e
}

// change records in e that an object will be changed from the state live to the state then.
func (r *record) change(e *recordEntry, live, then *unstructured.Unstructured) error {
	if e.Withheld != "" {
		return nil
	}
	if e.IsSecret() {
		e.Withheld = access.WithheldSecret
		return nil
	}
	before, after, err := e.patches(access.ContentOf(live), access.ContentOf(then))
	if err != nil {
		return fmt.Errorf("recording %s: %w", e, err)
	}
	if r.size()+len(before)+len(after)-len(e.Before)-len(e.After) > access.MaxRecordBytes {
		e.Before, e.After, e.Withheld = nil, nil, access.WithheldSize
		return nil
	}
	e.Before, e.After, e.Planned = before, after, true
	return nil
}

func (e *recordEntry) patches(live, then map[string]any) (before, after []byte, err error) {
	from, _ := json.Marshal(live) // decoded JSON can always be encoded
	to, _ := json.Marshal(then)
	if before, err = jsonpatch.CreateMergePatch(to, from); err == nil {
		after, err = jsonpatch.CreateMergePatch(from, to)
	}
	if err == nil {
		after, err = fingerprints(after)
	}
	if err == nil && len(e.Before) > 0 { // the undo restores the state before the first attempt
		if before, err = jsonpatch.MergeMergePatches(before, e.Before); err == nil {
			after, err = jsonpatch.MergeMergePatches(e.After, after)
		}
	}
	return before, after, err
}

// recordWrite updates the record with the object that the API server returned. changed means that
// the record must be stored again.
func (r *record) recordWrite(item *workItem, u *unstructured.Unstructured) (changed bool, err error) {
	e := r.find(item.ref)
	if e == nil || len(e.Before) == 0 {
		return false, nil
	}
	err = r.change(e, item.live, u)
	e.Planned = false
	return true, err
}

// removedFields returns the fields that scute set earlier and that the manifest lacks. Applying the
// manifest removes them. It ignores fields inside lists.
func removedFields(live, want *unstructured.Unstructured) []string {
	for _, e := range live.GetManagedFields() {
		var owned map[string]any
		if isOwnEntry(e) && e.FieldsV1 != nil && json.Unmarshal(e.FieldsV1.GetRawBytes(), &owned) == nil {
			return missingFields(owned, want.Object, "")
		}
	}
	return nil
}

func missingFields(owned, object map[string]any, path string) (fields []string) {
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
			fields = append(fields, missingFields(below, inside, path+name+".")...)
		}
	}
	return fields
}

func fingerprints(patch []byte) ([]byte, error) {
	var fields map[string]any
	if err := json.Unmarshal(patch, &fields); err != nil {
		return nil, err
	}
	return json.Marshal(fingerprint(fields))
}

// fingerprint replaces each leaf of a value with a hash, because the value may come from a Secret.
// The hashes are so short that many values have the same hash, so a value cannot be guessed from
// its hash.
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
		data, _ := json.Marshal(value) // decoded JSON can always be encoded
		return task.Hash(string(data))[:8]
	}
}

func (r *record) size() (n int) {
	for _, e := range r.Objects {
		n += len(e.Before) + len(e.After)
	}
	return n
}
