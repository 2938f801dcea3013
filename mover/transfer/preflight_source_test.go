package transfer

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	"scute.dev/kube/object"
	"scute.dev/mover"
)

// TestReleaseIsTriedOnlyWhereItIsDone checks that for an object without finalizers, the preflight tries the release
// only if its deletion is denied, as the move does.
func TestReleaseIsTriedOnlyWhereItIsDone(t *testing.T) {
	const why = `admission webhook "keep" denied the request`
	for name, c := range map[string]struct {
		denied []string
		want   []mover.Severity
	}{
		"release denied":              {[]string{http.MethodPatch}, nil},
		"deletion and release denied": {[]string{http.MethodPatch, http.MethodDelete}, []mover.Severity{mover.Error, mover.Warning}},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Verified{})
			f.src.merge(f.machine, obj{"metadata": obj{"finalizers": nil}})
			f.src.deny = func(r *http.Request) string {
				if slices.Contains(c.denied, r.Method) && strings.HasSuffix(r.URL.Path, "/machines/a-1") {
					return why
				}
				return ""
			}
			if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
				t.Fatal(err)
			}
			members, _, err := f.transfer.members(t.Context(), f.state.Spec, everyKind)
			if err != nil {
				t.Fatal(err)
			}
			found, err := (&scope{Transfer: f.transfer, members: members}).tryRemoval(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var got []mover.Severity
			for _, finding := range sortFindings(found) {
				got = append(got, finding.Severity)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestRemovalIsTried checks that the preflight finds what denies the removal of objects from the source. A denied
// deletion is only a warning: a webhook that expects the annotation of a move does not see it in a dry run.
func TestRemovalIsTried(t *testing.T) {
	for name, c := range map[string]struct {
		method, why string
		want        mover.Severity
		field, says string
	}{
		"accepted":                {"", "", "", "", ""},
		"release denied":          {http.MethodPatch, `admission webhook "keep" denied the request`, mover.Error, "Machine.cluster.x-k8s.io fleet/a-1", "finalizers"},
		"deletion denied":         {http.MethodDelete, `admission webhook "keep" denied the request`, mover.Warning, "Machine.cluster.x-k8s.io fleet/a-1", "rejects its deletion"},
		"webhook of side effects": {http.MethodDelete, `admission webhook "keep" does not support dry run`, mover.Warning, "source", "could not be checked"},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Verified{})
			f.src.deny = func(r *http.Request) string {
				if r.Method == http.MethodPatch || r.Method == http.MethodDelete {
					if r.URL.Query().Get("dryRun") != "All" {
						t.Errorf("%s %s is not a dry run", r.Method, r.URL)
					}
				}
				if r.Method == c.method && strings.HasSuffix(r.URL.Path, "/machines/a-1") {
					return c.why
				}
				return ""
			}
			if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
				t.Fatal(err)
			}
			members, _, err := f.transfer.members(t.Context(), f.state.Spec, everyKind)
			if err != nil {
				t.Fatal(err)
			}
			found, err := (&scope{Transfer: f.transfer, members: members}).tryRemoval(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			f.checkExists(f.src, f.machine)
			switch {
			case c.want == "" && len(found) == 0:
			case len(found) != 1 || found[0].Severity != c.want || found[0].Field != c.field || !strings.Contains(found[0].Message, c.says):
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestAnotherProgramIsNamed checks the warning and the remedy for objects that another program manages.
func TestAnotherProgramIsNamed(t *testing.T) {
	const kind = "Machine.cluster.x-k8s.io"
	for name, c := range map[string]struct {
		by      any
		carried []string
		message string
		carry   bool
	}{
		"its provider":               {nil, nil, "", false},
		"a program":                  {"terraform", nil, `"terraform" manages objects of this kind`, true},
		"a program without a name":   {"", nil, "another program manages objects of this kind", true},
		"a program, status and all":  {"terraform", []string{kind}, `"terraform" manages objects of this kind`, false},
		"a program, status of other": {"terraform", []string{"DevMachine.infrastructure.cluster.x-k8s.io"}, `"terraform" manages objects of this kind`, true},
	} {
		t.Run(name, func(t *testing.T) {
			f := moved(t, mover.Claimed{})
			f.src.merge(f.cluster, obj{"metadata": obj{"annotations": nil}})
			f.src.merge(f.machine, obj{"metadata": obj{"annotations": obj{"cluster.x-k8s.io/managed-by": c.by}}})
			f.state.Spec.CarryStatus = c.carried
			if err := f.transfer.connect(t.Context(), f.state.Spec, "", false); err != nil {
				t.Fatal(err)
			}
			members, _, err := f.transfer.members(t.Context(), f.state.Spec, everyKind)
			if err != nil {
				t.Fatal(err)
			}
			found, err := (&scope{Transfer: f.transfer, spec: f.state.Spec, members: members}).checkObjects(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			switch {
			case c.message == "" && len(found) == 0:
			case len(found) != 1 || found[0].Severity != mover.Warning || found[0].Field != "source: "+kind || !strings.Contains(found[0].Message, c.message),
				strings.Contains(found[0].Remedy, "add "+kind+" to spec.carryStatus") != c.carry:
				t.Errorf("findings = %+v", found)
			}
		})
	}
}

// TestEachLabelledDefinitionIsServed checks that a move and a backup are refused if the API server does not serve a
// labeled definition: its objects cannot be listed.
func TestEachLabelledDefinitionIsServed(t *testing.T) {
	unserved := func(f *fakes) {
		f.src.put(object.Ref{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition", Name: "gadgets.example.org"},
			obj{"metadata": obj{"labels": obj{"clusterctl.cluster.x-k8s.io": ""}}})
	}
	fields, remedies := preflighted(t, func(f *fakes, _ object.Ref) { unserved(f) }, nil)
	if !strings.Contains(fields["source: gadgets.example.org"], "does not serve it") || len(fields) != 1 || !strings.Contains(remedies, "established") {
		t.Errorf("findings of a move = %v, remedies %s", fields, remedies)
	}
	_, _, err := backUpAfter(t, unserved, func(*fakes, int) {})
	var refused *RefusedError
	if !errors.As(err, &refused) || len(refused.Findings) != 1 || refused.Findings[0].Field != "gadgets.example.org" {
		t.Errorf("Backup.Run = %v, findings %+v", err, refused)
	}
}

// TestAPauseByOthersIsRefused checks that the preflight names any other holder of a pause, with the remedy.
func TestAPauseByOthersIsRefused(t *testing.T) {
	for name, c := range map[string]struct{ annotation, holder, message, remedy string }{
		"a Pause":       {object.PausePrefix + "1a2b", "fleet/maintenance", "it is paused by Pause fleet/maintenance", "delete that Pause"},
		"a run":         {object.PauseAnnotation, "fleet/backup/1/hold", "it is paused by a task of a run: fleet/backup/1/hold", "wait until the run has resumed it"},
		"another move":  {object.MoveAnnotation, "fleet/other/1", "it is being moved by fleet/other/1", "wait for that move"},
		"none of these": {"example.com/pause", "somebody", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			fields, remedies := preflighted(t, func(f *fakes, _ object.Ref) {
				f.src.merge(f.cluster, obj{"metadata": obj{"annotations": obj{c.annotation: c.holder}}})
			}, nil)
			if got := fields["Cluster.cluster.x-k8s.io fleet/a"]; got != c.message || !strings.Contains(remedies, c.remedy) || len(fields) > 1 {
				t.Errorf("findings = %v, remedies %s", fields, remedies)
			}
		})
	}
}
