package remediation

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	eventsv1 "k8s.io/api/events/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/test/harness"
	"scute.dev/test/ports"
	"scute.dev/test/scuted"
	"scute.dev/test/testbed"
)

// TestPicture checks that `scutectl get machines` shows the decision and the next step with its
// deadline during a surge. Afterwards the Kubernetes events about the machine and its owner have
// all steps in order.
func TestPicture(t *testing.T) {
	address := ports.AddressForTest(t)
	daemon(t, scuted.DaemonOptions{Listen: address})
	ctx := harness.Deadline(t, 8*time.Minute)
	c := newCluster(ctx, t, testbed.Cluster{ControlPlanes: 3, CertificateExpiryDays: 30})
	before := c.machines(ctx, true)
	keepDiary(t, c.Namespace)
	policy(ctx, t, c.Namespace, nil)
	victims := choose(before, 1)
	victim := victims[0]
	release := c.stuckNewMachines(t) // the surge waits until scutectl has shown it
	harness.Must(t, kubeletDead(ctx, c, &victim))

	args := []string{"get", "machines", "-n", c.Namespace, "--nats", "nats://" + address}
	harness.Await(ctx, t, "the picture shows the surge", func() string {
		var picture struct {
			Log      struct{ Read bool }
			Machines []struct {
				Name        string
				Remediation struct {
					Decision string
					Outlook  struct {
						Rule, Next, Then string
						Until            time.Time
					}
				}
			}
		}
		if err := json.Unmarshal(scutectl(ctx, t, append(slices.Clone(args), "-o", "json")...), &picture); err != nil {
			return err.Error()
		}
		for _, m := range picture.Machines {
			r := m.Remediation
			if m.Name == victim.Name && picture.Log.Read && r.Decision == "RolloutSurge (relaxed)" &&
				r.Outlook.Rule == "e" && strings.Contains(r.Outlook.Next, "deletes the machine when ") && r.Outlook.Until.After(time.Now()) && r.Outlook.Then != "" {
				return ""
			}
		}
		return fmt.Sprintf("%+v", picture)
	})
	t.Logf("\n%s", scutectl(ctx, t, args...))
	t.Logf("without the log:\n%s", scutectl(ctx, t, append(slices.Clone(args[:4]), "--live")...))

	release()
	c.startStuck(ctx, t)
	c.replaced(ctx, t, before, victims)
	c.calm(ctx, t)
	const last = "RemediationSucceeded"
	harness.Await(ctx, t, "events tell how it ended", func() string { return cmp.Diff([]string{last}, lastOf(reasons(ctx, t, &victim))) })
	told := reasons(ctx, t, &victim)
	story := []string{"MachineUnhealthy", "ReplacementRequested", "ReplacementCreated", "ReplacementReady", "MachineDeleting", last}
	got := slices.DeleteFunc(slices.Clone(told), func(r string) bool { return !slices.Contains(story, r) })
	// The owner deletes the machine when the new one is ready. An observer sees both at once, and records the deletion
	// first.
	if at := slices.Index(got, "MachineDeleting"); at >= 0 && at+1 < len(got) && got[at+1] == "ReplacementReady" {
		got[at], got[at+1] = got[at+1], got[at]
	}
	if diff := cmp.Diff(story, got); diff != "" {
		t.Errorf("events of the machine = %v\n%s", told, diff)
	}
	owner := reasons(ctx, t, c.kcp(ctx))
	if diff := cmp.Diff([]string{"ReplacementRequested", last}, owner); diff != "" {
		t.Error("events of the owner: ", diff)
	}
	if all := len(told) + len(owner); all >= 15 {
		t.Errorf("%d events of one remediation, want fewer than 15: %v", all, told)
	}
}

// scutectl runs a command and returns its output.
func scutectl(ctx context.Context, t *testing.T, args ...string) []byte {
	t.Helper()
	in, _, err := shared.installed()
	harness.Must(t, err)
	cmd := in.Scutectl(ctx, args...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("scutectl %s: %v\n%s", strings.Join(args, " "), err, &stderr)
	}
	return out
}

// reasons returns the reasons of scute's events about an object, in the order of the log.
func reasons(ctx context.Context, t *testing.T, about client.Object) (list []string) {
	t.Helper()
	var events eventsv1.EventList
	harness.Must(t, shared.admin.List(ctx, &events, client.InNamespace(about.GetNamespace())))
	slices.SortFunc(events.Items, func(a, b eventsv1.Event) int { return strings.Compare(a.Name, b.Name) })
	for i := range events.Items {
		if e := &events.Items[i]; e.Regarding.UID == about.GetUID() && e.ReportingController == "scuted" {
			list = append(list, e.Reason)
			t.Logf("%s %s %s %s: %s", e.EventTime.UTC().Format("15:04:05.000"), e.Type, e.Regarding.Name, e.Reason, e.Note)
		}
	}
	return list
}

func lastOf(list []string) []string { return list[max(0, len(list)-1):] }
