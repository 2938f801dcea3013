package mover_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/eventlog"
	"scute.dev/eventlog/embedded"
	"scute.dev/kube/object"
	"scute.dev/mover"
	"scute.dev/pause"
)

// allEvents returns one event of each type, with all fields set.
func allEvents() []mover.Event {
	r := object.Ref{Group: object.CoreGroup, Kind: "Machine", Namespace: "fleet", Name: "a-1"}
	wide := object.Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "Identity", Name: "global"}
	secret := object.Ref{Kind: "Secret", Namespace: "fleet", Name: "a-ca"}
	yes := true
	waits := []mover.ObjectReason{{Ref: r, Reason: "w"}, {Ref: wide, Reason: "v"}}
	return []mover.Event{
		mover.Requested{Spec: mover.Spec{
			Namespace: "fleet", Name: "go", Clusters: []string{"a"}, All: true, Target: mover.Target{SecretName: "s", SecretKey: "k"}, DryRun: true,
			KeepFailed: true, CarryStatus: []string{"X.y"}, AcceptLoss: []string{"Z.y"}, Acknowledge: mover.Duration(time.Minute), AckKinds: map[string]mover.Duration{"X.y": mover.Duration(time.Hour)},
			Create: mover.Duration(time.Second), Resume: mover.Duration(90 * time.Second),
		}, Home: mover.Home{Cluster: "c", Log: "l"}},
		mover.LogLost{Log: "l", Phase: mover.PhaseDeleting, Sequence: 7},
		mover.TraceMissing{},
		mover.Resolved{Direction: mover.Forward, Reason: "r"},
		mover.Rebuilt{Direction: mover.Back},
		mover.TargetAbandoned{Reason: "r"},
		mover.Abandoned{Reason: "w"},
		mover.CreateStarted{},
		mover.Claimed{Holder: "h"},
		mover.PreflightPassed{Clusters: []string{"a"}, Warnings: []mover.Finding{{Severity: mover.Warning, Field: "f", Message: "m", Remedy: "r"}}},
		mover.Refused{Findings: []mover.Finding{{Severity: mover.Error, Field: "f", Message: "m", Remedy: "r"}}},
		mover.BaselineTaken{Objects: map[object.Ref]pause.Baseline{r: {UID: "u", Paused: object.False, AlreadyPaused: true}, wide: {}}},
		mover.PauseIntended{Roots: []pause.Root{{Ref: r, UID: "u", Found: true}}},
		mover.Paused{},
		mover.Acknowledged{Objects: map[object.Ref]pause.Signal{r: pause.ByCondition, secret: pause.Assumed}},
		mover.Waiting{For: waits, Total: 7},
		mover.AllAcknowledged{},
		mover.PlanDrafted{First: true, Items: []mover.Item{{
			Ref: r, Version: "v1beta2", UID: "u", ResourceVersion: "1", Hash: "h", Level: 2, Cluster: "a", PausedByUser: true, KeepReason: "k",
			Owners: []object.Owner{{Ref: wide, Version: "v1", UID: "o", Controller: &yes, BlockOwnerDeletion: &yes}},
		}}},
		mover.Planned{Hash: "h", Excluded: waits, Announced: true},
		mover.Created{Objects: map[object.Ref]types.UID{r: "t"}, Adopted: []object.Ref{r}},
		mover.AllCreated{},
		mover.Verified{},
		mover.Deleted{Objects: []object.Ref{r, wide, secret}},
		mover.SourceEmptied{},
		mover.PausesRestored{},
		mover.Resumed{Objects: []object.Ref{r}},
		mover.Succeeded{StillPaused: waits, Total: 7},
		mover.AbortRequested{Reason: "r"},
		mover.AbortRefused{Reason: "w"},
		mover.TransientFailure{Message: "m", Next: "n", Stranded: true},
		mover.Failed{Message: "m", Next: "n"},
		mover.RollbackStarted{Reason: "r"},
		mover.Removed{Objects: []object.Ref{r}},
		mover.TargetCleared{},
		mover.RolledBack{},
	}
}

func TestCatalog(t *testing.T) {
	catalog := mover.NewCatalog()
	seen := make(map[string]bool)
	for _, e := range allEvents() {
		ev, err := catalog.Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		got, err := catalog.Decode(ev)
		if err != nil {
			t.Errorf("Decode of %T: %v", e, err)
		}
		if diff := cmp.Diff(e, got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%T differs after decoding: %s", e, diff)
		}
		if seen[ev.Type] {
			t.Errorf("two events have the type %s", ev.Type)
		}
		seen[ev.Type] = true
		if v := reflect.ValueOf(e); v.IsZero() && v.NumField() > 0 {
			t.Errorf("oneOfEach has no values for %T", e)
		}
	}
}

// TestApplyIsTotal checks that Apply and the functions of a state accept any event in any state: events of the log have
// already happened.
func TestApplyIsTotal(t *testing.T) {
	for _, first := range allEvents() {
		for _, second := range allEvents() {
			var s mover.State
			s.Apply(first, time.Unix(1, 0))
			s.Apply(second, time.Unix(2, 0))
			mover.Next(&s)
			mover.Status(&s)
			mover.Due(&s)
		}
	}
}

// secretMaterial returns secrets that must not leak in any form.
func secretMaterial() []string {
	return []string{
		"-----BEGIN RSA PRIVATE KEY-----\nMIIEpAIBAAKCAQEAtopsecretkeymaterial0123456789\n-----END RSA PRIVATE KEY-----",
		"apiVersion: v1\nkind: Config\nusers: [{name: admin, user: {token: s3cr3t-bearer-token}}]",
		"eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJzY3V0ZS10ZXN0In0.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg",
		"hunter2-the-password",
		"abcdef.0123456789abcdef",
	}
}

// TestNoSecretInTheLog records a complete move of objects with secrets, and errors that quote them, and searches the
// log's files for these secrets as text, in base64 and as hashes.
func TestNoSecretInTheLog(t *testing.T) {
	secrets := secretMaterial()
	b64 := func(s string) string { return base64.StdEncoding.EncodeToString([]byte(s)) }
	key, kubeconfig, jwt, password, token := secrets[0], secrets[1], secrets[2], secrets[3], secrets[4]
	var objects []*unstructured.Unstructured
	for i, text := range []string{
		"apiVersion: cluster.x-k8s.io/v1beta2\nkind: Cluster\nmetadata: {name: a}",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a-kubeconfig}\ndata: {value: " + b64(kubeconfig) + "}",
		"apiVersion: v1\nkind: Secret\nmetadata: {name: a-ca}\ndata: {tls.key: " + b64(key) + "}\nstringData: {token: " + jwt + "}",
		"apiVersion: bootstrap.cluster.x-k8s.io/v1beta2\nkind: KubeadmConfig\nmetadata: {name: a-1, labels: {cluster.x-k8s.io/cluster-name: a, clusterctl.cluster.x-k8s.io/move: x}}\n" +
			"spec: {joinConfiguration: {discovery: {bootstrapToken: {token: " + token + "}}}, users: [{passwd: " + password + "}]}",
	} {
		u := parse(t, text)
		u.SetNamespace("fleet")
		u.SetUID(types.UID(fmt.Sprintf("uid-%d", i)))
		u.SetResourceVersion("1")
		objects = append(objects, u)
	}
	var world []object.Observed
	hashes := make(map[object.Ref]string)
	for _, u := range objects {
		o := object.Observe(u)
		world = append(world, o)
		var err error
		if hashes[o.Ref], err = mover.ContentHash(u); err != nil {
			t.Fatal(err)
		}
	}
	members := mover.Select(world, mover.Selection{Namespace: "fleet", Clusters: []string{"a"}})
	if len(members.Objects) != len(objects) {
		t.Fatalf("%d of %d objects selected", len(members.Objects), len(objects))
	}
	var plan []mover.Item
	base := mover.BaselineRead{Objects: make(map[object.Ref]pause.Baseline), Roots: []pause.Root{{Ref: world[0].Ref, UID: world[0].UID}}}
	acks := mover.AcksRead{New: make(map[object.Ref]pause.Signal), Stable: true}
	created := mover.Created{Objects: make(map[object.Ref]types.UID)}
	var gone mover.Deleted
	for _, m := range members.Objects {
		item := mover.ItemOf(m, hashes[m.Ref])
		plan = append(plan, item)
		base.Objects[m.Ref], acks.New[m.Ref] = pause.Baseline{UID: m.UID}, pause.Assumed
		created.Objects[m.Ref] = "there-" + m.UID
		gone.Objects = append(gone.Objects, m.Ref)
	}
	quoting := fmt.Sprintf("KubeadmConfig \"a-1\" is invalid: spec.files[0].content: Invalid value: %q; %s; token %s; kubeconfig %s", key, jwt, token, b64(kubeconfig))
	some := mover.ObjectReason{Ref: plan[0].Ref, Reason: quoting}

	state := &mover.State{}
	var events []mover.Event
	store := func(list ...mover.Event) {
		for _, e := range list {
			events = append(events, e)
			state.Apply(e, time.Unix(int64(len(events)), 0))
		}
	}
	store(mover.Requested{Spec: mover.Spec{Namespace: "fleet", Clusters: []string{"a"}, Target: mover.Target{SecretName: "there", SecretKey: "value"}}}, mover.Claimed{Holder: "one"})
	for _, o := range []mover.Outcome{
		mover.StepFailed{Message: quoting},
		mover.PreflightDone{Findings: []mover.Finding{{Severity: mover.Warning, Field: "f", Message: quoting}}},
		base,
		mover.Paused{},
		mover.AcksRead{Pending: []mover.ObjectReason{some}},
		acks,
		mover.Drafted{Items: plan, Excluded: []mover.ObjectReason{some}},
		created,
		mover.AllCreated{},
		mover.CopiesUnacknowledged{Pending: []mover.ObjectReason{some}},
		mover.VerifyDone{},
		mover.StepFailed{Message: quoting},
		gone,
		mover.SourceEmptied{},
		mover.PausesRestored{},
		mover.ResumeRead{Pending: []mover.ObjectReason{some}},
	} {
		list, err := mover.Decide(state, o, time.Unix(100, 0))
		if err != nil {
			t.Fatal(err)
		}
		store(list...)
	}
	for _, failure := range []mover.Outcome{mover.StepFailed{Message: quoting, Final: true}, mover.VerifyDone{Differences: []mover.ObjectReason{some}}} {
		list, err := mover.Decide(&mover.State{Phase: mover.PhaseCreating}, failure, time.Unix(100, 0))
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, list...)
	}

	dir := t.TempDir()
	l, err := embedded.Open(t.Context(), embedded.Options{Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	commit := eventlog.Commit{Aggregate: eventlog.Aggregate{Kind: eventlog.KindMove, ID: "m"}, ID: "1"}
	for _, e := range events {
		ev, err := mover.NewCatalog().Encode(e)
		if err != nil {
			t.Fatal(err)
		}
		ev.Time, ev.Actor = time.Unix(1, 0), "daemon/one"
		commit.Events = append(commit.Events, ev)
	}
	if _, err := l.Append(t.Context(), commit); err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	stored := read(t, dir)
	if !bytes.Contains(stored, []byte("a-kubeconfig")) {
		t.Fatal("the move is not in the files, so nothing was checked")
	}
	for _, s := range secrets {
		quoted, _ := json.Marshal(s)
		sum := sha256.Sum256([]byte(s))
		for _, form := range []string{s, strings.Trim(string(quoted), `"`), b64(s), hex.EncodeToString(sum[:])} {
			if bytes.Contains(stored, []byte(form)) {
				t.Errorf("the log contains %q", form)
			}
		}
	}
	for _, part := range []string{"topsecretkeymaterial", "s3cr3t-bearer-token", "PRIVATE KEY"} {
		if bytes.Contains(stored, []byte(part)) {
			t.Errorf("the log contains %q", part)
		}
	}
}

func read(t *testing.T, dir string) []byte {
	t.Helper()
	var all []byte
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := os.ReadFile(path)
		all = append(all, data...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestEventsAreBounded checks that no event comes near the log's limit of 1 MiB, whatever the size of a move and the
// length of its names.
func TestEventsAreBounded(t *testing.T) {
	const n, limit = 5000, 700 << 10
	long := strings.Repeat("x", 240)
	ref := func(i int) object.Ref {
		return object.Ref{Group: "infrastructure.cluster.x-k8s.io", Kind: "DevMachineTemplate", Namespace: strings.Repeat("n", 63), Name: fmt.Sprintf("%s-%d", long, i)}
	}
	var (
		base    = mover.BaselineRead{Objects: make(map[object.Ref]pause.Baseline)}
		acks    = mover.AcksRead{New: make(map[object.Ref]pause.Signal)}
		draft   mover.Drafted
		awake   mover.ResumeRead
		pre     mover.PreflightDone
		differs mover.VerifyDone
	)
	for i := range n {
		r := ref(i)
		base.Objects[r], acks.New[r] = pause.Baseline{UID: "00000000-0000-0000-0000-000000000000"}, pause.ByCondition
		owner := object.Owner{Ref: ref(i + 1), Version: "v1beta2"}
		draft.Items = append(draft.Items, mover.Item{Ref: r, UID: "00000000-0000-0000-0000-000000000000", Hash: strings.Repeat("0", 64), Owners: []object.Owner{owner, owner, owner}})
		why := mover.ObjectReason{Ref: r, Reason: strings.Repeat("because ", 1000)}
		draft.Excluded, awake.Pending, differs.Differences = append(draft.Excluded, why), append(awake.Pending, why), append(differs.Differences, why)
		awake.New = append(awake.New, r)
		pre.Findings = append(pre.Findings, mover.Finding{Severity: mover.Warning, Field: r.String(), Message: why.Reason, Remedy: "fix it"})
	}
	pre.Findings = append(pre.Findings, mover.Finding{Severity: mover.Error, Field: "the last one", Message: "matters most"})
	acks.Pending = awake.Pending
	for _, o := range []mover.Outcome{pre, base, acks, draft, differs, awake, mover.StepFailed{Message: strings.Repeat("no ", 1<<20)}} {
		events, err := mover.Decide(&mover.State{Phase: mover.PhaseResuming}, o, time.Unix(1, 0))
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range events {
			ev, err := mover.NewCatalog().Encode(e)
			if err != nil {
				t.Fatal(err)
			}
			if len(ev.Data) > limit {
				t.Errorf("%T has %d bytes", e, len(ev.Data))
			}
			if refused, ok := e.(mover.Refused); ok && (refused.Findings[0].Field != "the last one" || !strings.Contains(refused.Findings[len(refused.Findings)-1].Message, "more")) {
				t.Errorf("want the error first and the omitted findings counted, got %+v", refused.Findings[0])
			}
		}
	}
}
