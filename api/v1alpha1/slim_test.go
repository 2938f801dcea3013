package v1alpha1_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/api/v1alpha1"
)

// TestSlim checks that even the largest objects of tenants take little memory, and that a patch of a slim object
// changes nothing that was removed from it.
func TestSlim(t *testing.T) {
	large := strings.Repeat("y", 200<<10)
	names := make([]string, 20_000)
	for i := range names {
		names[i] = fmt.Sprintf(`"x.y/n%d"`, i)
	}
	meta := fmt.Sprintf(`"metadata":{"name":"p","namespace":"n","annotations":{%s:"v","x.y/z":%q,"scute.dev/z":%q,"scute.dev/b":"kept"},"managedFields":[{"manager":"m","fieldsV1":{"a":%q}}],`+
		`"labels":{%s:"v"},"ownerReferences":[{"name":%s}],"finalizers":[%s,"scute.dev/kept"]}`,
		strings.Join(names, `:"v",`), large, large, large, strings.Join(names, `:"v",`), strings.Join(names, `},{"name":`), strings.Join(names, ","))
	for kind, c := range map[string]struct {
		made client.Object
		spec string
	}{
		"RepairPolicy":     {&v1alpha1.RepairPolicy{}, fmt.Sprintf(`{"escalation":[{"name":"s","timeout":"5m","template":{"spec":{"a":%q}}}]}`, large)},
		"Pause":            {&v1alpha1.Pause{}, fmt.Sprintf(`{"selector":{"matchLabels":{"a":%q}}}`, large)},
		"Move":             {&v1alpha1.Move{}, fmt.Sprintf(`{"carryStatus":[%q]}`, large)},
		"BackupSchedule":   {&v1alpha1.BackupSchedule{}, fmt.Sprintf(`{"schedule":%q}`, large)},
		"SurgeRemediation": {&v1alpha1.SurgeRemediation{}, `{}`},
	} {
		o := c.made
		if err := json.Unmarshal(fmt.Appendf(nil, `{"kind":%q,%s,"spec":%s}`, kind, meta, c.spec), o); err != nil {
			t.Fatal(err)
		}
		v1alpha1.Slim(o)
		before := o.DeepCopyObject().(client.Object) //nolint:forcetypeassert // a copy
		text, err := json.Marshal(o)
		if err != nil || len(text) > 2000 || o.GetAnnotations()["scute.dev/b"] != "kept" || len(o.GetFinalizers()) != 1 {
			t.Errorf("%s has %d bytes: %.300s, error %v", kind, len(text), text, err)
		}
		unread, _ := o.(interface {
			Unread() *v1alpha1.UnreadablePart
		})
		if refused := unread != nil && unread.Unread() != nil; refused == (c.spec == "{}") {
			t.Errorf("%s is unreadable: %v", kind, refused)
		}
		o.SetFinalizers([]string{"scute.dev/f"})
		if patch, err := client.MergeFrom(before).Data(o); err != nil || string(patch) != `{"metadata":{"finalizers":["scute.dev/f"]}}` {
			t.Errorf("%s: patch %.300s, error %v", kind, patch, err)
		}
	}
}

// TestSlimOwnPrefix checks that names with the prefix scute.dev/ are limited too, because tenants can choose such
// names.
func TestSlimOwnPrefix(t *testing.T) {
	p := &v1alpha1.RepairPolicy{}
	p.Annotations, p.Finalizers = make(map[string]string), []string{"scute.dev/first"}
	for i := range 10_000 {
		p.Annotations[fmt.Sprintf("scute.dev/n%d", i)] = "v"
		p.Finalizers = append(p.Finalizers, fmt.Sprintf("scute.dev/n%d", i))
	}
	v1alpha1.Slim(p)
	if text, err := json.Marshal(p); err != nil || len(text) > 2000 || p.Finalizers[0] != "scute.dev/first" {
		t.Errorf("got %d bytes: %.300s, error %v", len(text), text, err)
	}
}

// TestSlimUnreadable checks that the text of an unreadable spec is not kept.
func TestSlimUnreadable(t *testing.T) {
	p := &v1alpha1.RepairPolicy{}
	if err := json.Unmarshal([]byte(`{"spec":["`+strings.Repeat("y", 200<<10)+`"]}`), p); err != nil {
		t.Fatal(err)
	}
	v1alpha1.Slim(p)
	if unread := p.Unread(); unread == nil || unread.Raw != nil || unread.Problem == "" {
		t.Errorf("Unread = %.300v, want a problem without the text", unread)
	}
}
