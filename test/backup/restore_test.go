package backup

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"filippo.io/age"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/cmd/clusterctl/client/cluster"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/cloud"
	"scute.dev/test/harness"
	"scute.dev/test/inventory"
	"scute.dev/test/rotation"
	"scute.dev/test/testbed"
)

const (
	namespace = "fleet"
	still     = "still"  // paused by a user
	legacy    = "legacy" // for the folder that clusterctl writes
)

// TestRestoreElsewhere backs up a running cluster, permanently kills its management cluster, and restores it in another
// one. Both commands are killed several times.
func TestRestoreElsewhere(t *testing.T) {
	ctx := harness.Deadline(t, 10*time.Minute)
	_, err := shared.blue.CreateCluster(ctx, testbed.Cluster{Namespace: namespace, Name: "prod", ControlPlanes: 1, Workers: 1, Topology: true, MachineHealthCheck: true})
	harness.Must(t, err)
	for in, name := range map[string]string{namespace: still, legacy: "old"} {
		_, err = shared.blue.CreateCluster(ctx, testbed.Tiny(in, name))
		harness.Must(t, err)
	}
	for _, name := range []string{"prod", still} {
		harness.Must(t, shared.blue.WaitAvailable(ctx, namespace, name))
	}
	harness.Must(t, shared.blue.WaitAvailable(ctx, legacy, "old"))
	harness.Must(t, shared.blue.SetPaused(ctx, namespace, still, true))

	key, recipient := newKey(t)
	folder := filepath.Join(t.TempDir(), "backup")
	restore := []string{"restore", "clusters", "--from", folder, "--identity-file", key}
	backUp(ctx, t, folder, recipient, restore)
	before, err := inventory.Take(ctx, shared.blue, namespace)
	harness.Must(t, err)
	nothingReadable(t, folder)
	refusals(ctx, t, folder, restore)
	byClusterctl := t.TempDir()
	harness.Must(t, cluster.New(cluster.Kubeconfig{Path: shared.blue.KubeconfigPath()}, nil).ObjectMover().ToDirectory(ctx, legacy, byClusterctl))
	old, err := inventory.Take(ctx, shared.blue, legacy)
	harness.Must(t, err)

	machines, mark := snapshot(ctx, t)
	harness.Must(t, shared.blue.StopControllers())
	harness.Must(t, shared.blue.KillAPIServer(ctx))
	harness.Must(t, shared.blue.KillEtcd(ctx))
	restore = append(restore, "--source-is-gone")
	restoreKilled(ctx, t, before.Names, restore)

	restored(ctx, t, namespace, "prod", before.Names)
	run(ctx, t, shared.to, 1, []string{"--source-is-gone"}, "restore", "clusters", "--from", byClusterctl)
	unacknowledged(ctx, t, byClusterctl)
	run(ctx, t, shared.to, 0, []string{"1 cluster of namespace legacy (old)"}, "restore", "clusters", "--from", byClusterctl, "--source-is-gone")
	restored(ctx, t, legacy, "old", old.Names)
	unchanged(ctx, t, machines, mark)
	run(ctx, t, shared.to, 0, []string{"was already restored here"}, restore...)
	unchanged(ctx, t, machines, mark)
}

// unacknowledged restores while no controller can write the status of Machines, so that they cannot acknowledge the
// pause. They stay paused.
func unacknowledged(ctx context.Context, t *testing.T, folder string) {
	t.Helper()
	admin := shared.to.Client()
	var machines clusterv1.MachineList
	harness.Must(t, admin.List(ctx, &machines, client.InNamespace(namespace)))
	machine := &machines.Items[0]
	match := admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
		Operations: []admissionv1.OperationType{admissionv1.Update},
		Rule:       admissionv1.Rule{APIGroups: []string{clusterv1.GroupVersion.Group}, APIVersions: []string{"*"}, Resources: []string{"machines/status"}},
	}}}}
	lift := harness.Policy(ctx, t, admin, "speechless", match, admissionv1.Validation{Expression: "false"})
	harness.Await(ctx, t, "no status of a Machine can be written", func() string {
		tried := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Failed"}}`))
		if err := admin.Status().Patch(ctx, machine.DeepCopy(), tried, client.DryRunAll); !apierrors.IsInvalid(err) {
			return fmt.Sprint("the answer is ", err)
		}
		return ""
	})
	run(ctx, t, shared.to, 1, []string{"everything stays paused: Machine.cluster.x-k8s.io legacy/"},
		"restore", "clusters", "--from", folder, "--source-is-gone", "--timeout", "5s")
	var clusters clusterv1.ClusterList
	harness.Must(t, admin.List(ctx, &clusters, client.InNamespace(legacy)))
	if len(clusters.Items) != 1 || !ptr.Deref(clusters.Items[0].Spec.Paused, false) {
		t.Errorf("Clusters of namespace %s = %v, want one that is paused", legacy, clusters.Items)
	}
	harness.Must(t, lift(ctx))
}

// restored checks that all objects exist, that nothing of the restore remains, and that the target's controllers have
// reconciled them. A Cluster that a user had paused is still paused.
func restored(ctx context.Context, t *testing.T, namespace, name string, want []string) {
	t.Helper()
	after, err := inventory.Take(ctx, shared.to, namespace)
	harness.Must(t, err)
	if !slices.Equal(want, after.Names) {
		t.Errorf("%s: missing: %s; unexpected: %s", name, inventory.Missing(want, after.Names), inventory.Missing(after.Names, want))
	}
	asleep := slices.Contains(want, "Cluster "+still)
	if slices.Contains(after.Touched, "Cluster "+still+": spec.paused") != asleep {
		t.Errorf("Cluster %s is not paused as before: %v", still, after.Touched)
	}
	for _, how := range after.Touched {
		if strings.Contains(how, "annotation") || !strings.Contains(how, still) {
			t.Errorf("%s: %s remains of the restore", name, how)
		}
	}
	harness.Must(t, shared.to.WaitAvailable(ctx, namespace, name))
}

// backUp creates a backup with a command that is killed several times, and checks that a killed command leaves no
// backup.
func backUp(ctx context.Context, t *testing.T, folder, recipient string, restore []string) {
	t.Helper()
	args := []string{"backup", "clusters", "prod", still, "-n", namespace, "--to", folder}
	run(ctx, t, shared.blue, 2, []string{"--age-recipient"}, args...)
	args = append(args, "--age-recipient", recipient)
	k := newKiller(t, shared.blue, func(r *http.Request) bool { return r.Method == http.MethodGet })
	for _, n := range []int{60, 90} {
		if ended, said := k.run(ctx, t, n, false, args...); ended {
			t.Fatalf("the backup ended before request %d: %s", n, said)
		}
		run(ctx, t, shared.to, 1, []string{"no complete backup"}, restore...)
	}
	run(ctx, t, shared.blue, 0, []string{"of 2 clusters of namespace fleet (prod, still)", "encrypted to 1 recipient"}, args...)
	run(ctx, t, shared.blue, 2, []string{"already has a complete backup"}, args...)
}

// refusals checks restores that must change nothing.
func refusals(ctx context.Context, t *testing.T, folder string, restore []string) {
	t.Helper()
	run(ctx, t, shared.to, 1, []string{"--source-is-gone"}, restore...)
	run(ctx, t, shared.to, 1, []string{"fleet/prod", "it still runs there", "fleet/still", "it still exists there, paused"}, append(restore, "--source-kubeconfig", shared.blue.KubeconfigPath())...)
	run(ctx, t, shared.to, 1, []string{"it is not the management cluster that was backed up"}, append(restore, "--source-kubeconfig", shared.to.KubeconfigPath())...)
	run(ctx, t, shared.blue, 1, []string{"it is the target", "it still has this Cluster"}, append(restore, "--source-kubeconfig", shared.blue.KubeconfigPath())...)
	run(ctx, t, shared.to, 1, []string{"--carry-status", "serves no kind"}, append(restore, "--source-is-gone", "--carry-status", "Gadget.example.org")...)

	other, _ := newKey(t)
	run(ctx, t, shared.to, 1, []string{"none of the identities"}, "restore", "clusters", "--from", folder, "--identity-file", other, "--source-is-gone")
	run(ctx, t, shared.to, 1, []string{"--identity-file"}, "restore", "clusters", "--from", folder, "--source-is-gone")
	files, err := filepath.Glob(filepath.Join(folder, "objects", "Machine.*"))
	harness.Must(t, err)
	data, err := os.ReadFile(files[0])
	harness.Must(t, err)
	flipped := slices.Clone(data)
	flipped[len(flipped)-3] ^= 4
	harness.Must(t, os.WriteFile(files[0], flipped, 0o600))
	run(ctx, t, shared.to, 1, []string{"no complete backup", "--from " + folder}, "restore", "clusters", "--from", filepath.Dir(folder), "--source-is-gone")
	run(ctx, t, shared.to, 1, []string{"damaged"}, append(restore, "--source-is-gone")...)
	harness.Must(t, os.WriteFile(files[0], data, 0o600))

	run(ctx, t, shared.to, 0, []string{"can be restored"}, append(restore, "--source-is-gone", "--dry-run")...)
	left, err := inventory.Take(ctx, shared.to, namespace)
	harness.Must(t, err)
	if len(left.Names) > 0 {
		t.Errorf("refused restores and a dry run created %v", left.Names)
	}
}

// restoreKilled kills the restore after every few writes. While an object is missing, no Cluster may be active.
func restoreKilled(ctx context.Context, t *testing.T, want, restore []string) {
	t.Helper()
	const shares = 10
	share := rotation.Of(t, shares, "the moments at which the restore is killed")
	k := newKiller(t, shared.to, writes)
	kills, told := 0, false
	for late := false; ; late = !late {
		n := 3 * share.Of // writes between two kills
		if kills == 0 {
			n = 1 + share.First
		}
		ended, said := k.run(ctx, t, n, late, restore...)
		if ended {
			t.Logf("restored after %d kills: %s", kills, said)
			break
		}
		kills++
		now, err := inventory.Take(ctx, shared.to, namespace)
		harness.Must(t, err)
		if missing := inventory.Missing(want, now.Names); missing != "" && active(ctx, t) {
			t.Fatalf("the cluster is active after kill %d, but objects are missing: %s", kills, missing)
		}
		if !told && recorded(ctx, t) {
			told = true
			run(ctx, t, shared.to, 1, []string{"the restore of fleet/prod from backup"}, "doctor")
		}
	}
	if !told {
		t.Error("no kill happened after the restore had begun")
	}
	if kills < 3 {
		t.Errorf("the restore was killed %d times, want at least 3", kills)
	}
}

// recorded reports whether a restore has recorded its beginning.
func recorded(ctx context.Context, t *testing.T) bool {
	t.Helper()
	var list corev1.ConfigMapList
	harness.Must(t, shared.to.Client().List(ctx, &list, client.InNamespace(namespace)))
	return slices.ContainsFunc(list.Items, func(m corev1.ConfigMap) bool { return strings.HasPrefix(m.Name, "scute-restore-") })
}

// active reports whether the Cluster exists and is not paused.
func active(ctx context.Context, t *testing.T) bool {
	t.Helper()
	c := &clusterv1.Cluster{}
	err := shared.to.Client().Get(ctx, client.ObjectKey{Namespace: namespace, Name: "prod"}, c)
	if apierrors.IsNotFound(err) {
		return false
	}
	harness.Must(t, err)
	return c.Spec.Paused == nil || !*c.Spec.Paused
}

// newKey creates an age key, and returns the file with the private part, and the public part.
func newKey(t *testing.T) (file, recipient string) {
	t.Helper()
	identity, err := age.GenerateX25519Identity()
	harness.Must(t, err)
	file = filepath.Join(t.TempDir(), "key.txt")
	harness.Must(t, os.WriteFile(file, []byte(identity.String()+"\n"), 0o600))
	return file, identity.Recipient().String()
}

// nothingReadable checks that no object in a backup is readable.
func nothingReadable(t *testing.T, folder string) {
	t.Helper()
	files := 0
	err := filepath.WalkDir(folder, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		files++
		data, err := os.ReadFile(path)
		if strings.Contains(path, "/objects/") && !strings.HasPrefix(string(data), "age-encryption.org/v1") {
			t.Errorf("%s is not encrypted", path)
		}
		if info, statErr := d.Info(); statErr != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, error %v; want 0600", path, info.Mode(), statErr)
		}
		return err
	})
	harness.Must(t, err)
	if files < 30 {
		t.Errorf("%d files in the backup, want at least 30", files)
	}
}

func snapshot(ctx context.Context, t *testing.T) (cloud.Snapshot, cloud.Mark) {
	t.Helper()
	before, err := shared.bed.Cloud().Snapshot(ctx)
	harness.Must(t, err)
	return before, shared.bed.Cloud().Mark()
}

// unchanged checks that no machine was created, deleted or replaced.
func unchanged(ctx context.Context, t *testing.T, before cloud.Snapshot, mark cloud.Mark) {
	t.Helper()
	after, err := shared.bed.Cloud().Snapshot(ctx)
	harness.Must(t, err)
	for _, line := range before.Diff(after) {
		t.Errorf("the cloud changed: %s", line)
	}
	journal, err := shared.bed.Cloud().Since(mark)
	harness.Must(t, err)
	if bad := journal.Replacements(); len(bad) > 0 {
		t.Errorf("machines were replaced in the cloud:\n%s", bad)
	}
}
