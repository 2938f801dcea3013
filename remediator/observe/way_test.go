package observe

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

const connectionRefused = "dial tcp 10.0.0.7:10250: connect: connection refused"

// TestWays checks that a live member behind a dead kubelet is found alive, that a dead member is never found alive, and
// that the leader is asked to move leadership through the connection on which it answered.
func TestWays(t *testing.T) {
	for _, c := range []struct {
		name   string
		open   []string // nodes whose client port can be reached
		breaks func(*workload)
		// answers, way and why are of the member of node a, which leads.
		answers object.ConditionStatus
		way     string
		why     string
		asked   int
		stays   string // why leadership cannot be moved
	}{
		{name: "all is well", open: []string{"a", "b", "c"}, answers: object.True, way: "port-forward"},
		{
			name: "kubelet dead, client port open", open: []string{"a"}, breaks: func(tn *workload) { tn.node("a").kubelet = connectionRefused },
			answers: object.True, way: "client port 127.0.0.1:", why: "no connection through its node: error dialing backend: " + connectionRefused,
		},
		{
			name: "kubelet hangs, client port open", open: []string{"a"}, breaks: func(tn *workload) { tn.node("a").kubelet = kubeletHangs },
			answers: object.True, way: "client port 127.0.0.1:", why: "no answer through its node within 500ms",
		},
		{
			name: "kubelet dead", breaks: func(tn *workload) { tn.node("a").kubelet = connectionRefused },
			answers: object.True, way: "etcdctl in etcd-b", why: "no connection through its node", asked: 1,
		},
		{
			name: "two kubelets dead", breaks: func(tn *workload) { tn.node("a").kubelet, tn.node("b").kubelet = connectionRefused, connectionRefused },
			answers: object.True, way: "etcdctl in etcd-c", why: "no connection through its node", asked: 2,
		},
		{
			name: "kubelet dead, its etcd has lost the others", breaks: func(tn *workload) {
				tn.node("a").kubelet, tn.node("a").errors = connectionRefused, []string{"etcdserver: no leader"}
			},
			answers: object.False, way: "etcdctl in etcd-b", why: "etcdserver: no leader", asked: 1,
		},
		{
			name: "machine dead", open: []string{"a"}, breaks: func(tn *workload) { tn.node("a").kubelet = connectionRefused; tn.node("a").answers.Stop() },
			answers: object.Unknown, why: "etcdctl in etcd-b: Failed to get the status of endpoint https://127.0.0.1:", asked: 1, stays: "the leader on a could not be reached",
		},
		{
			name: "etcd dead, its node is well", breaks: func(tn *workload) { tn.node("a").answers.Stop() },
			answers: object.False, why: "its node answers, and etcd does not", asked: 1, stays: "the leader on a could not be reached",
		},
		{
			name: "kubelet forwards to nowhere", breaks: func(tn *workload) { tn.node("a").kubelet = kubeletNoPod },
			answers: object.True, way: "etcdctl in etcd-b", why: "its node answers, and etcd does not: ", asked: 1,
		},
		{
			name: "exec forbidden", breaks: func(tn *workload) { tn.node("a").kubelet, tn.noExec = connectionRefused, true },
			answers: object.Unknown, why: `etcdctl in etcd-c: pods "etcd-c" is forbidden`, stays: "could not be reached",
		},
		{
			name: "etcd without etcdctl", breaks: func(tn *workload) { tn.node("a").kubelet, tn.noEtcdctl = connectionRefused, true },
			answers: object.Unknown, why: "etcdctl in etcd-c: the image of its etcd has no etcdctl", stays: "could not be reached",
		},
		{
			name: "another member has the address", open: []string{"a"}, breaks: func(tn *workload) {
				a := tn.node("a")
				a.kubelet, a.port = connectionRefused, tn.node("b").port
			},
			answers: object.True, way: "etcdctl in etcd-b", why: "another member answers", asked: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			tn := newTenant(t, "a", "b", "c")
			if c.breaks != nil {
				c.breaks(tn)
			}
			d := tn.dialer(c.open...)
			if tn.node("a").kubelet == kubeletHangs {
				d.forward = portDelay
			}
			found := d.survey(t.Context(), []string{"a", "b", "c"})
			if found.Err != "" || len(found.Members) != 3 {
				t.Fatalf("survey = %+v", found)
			}
			t.Logf("%+v", found.Members[0])
			a := found.Members[0]
			if a.Answers != c.answers || !strings.HasPrefix(a.Via, c.way) || (a.Via == "") != (c.way == "") || !strings.Contains(a.Reason, c.why) || !a.Leader {
				t.Errorf("member a = %+v", a)
			}
			for _, m := range found.Members[1:] {
				if m.Answers != object.True {
					t.Errorf("member = %+v, want it to answer", m)
				}
			}
			if tn.asked != c.asked {
				t.Errorf("etcdctl was run %d times, want %d", tn.asked, c.asked)
			}
			err := d.moveLeader(t.Context(), []string{"a", "b", "c"}, "c")
			switch moved := tn.leaderID() == tn.node("c").id; {
			case c.stays == "" && (err != nil || !moved):
				t.Errorf("leadership was not moved: %v", err)
			case c.stays != "" && (err == nil || moved || !strings.Contains(err.Error(), c.stays)):
				t.Errorf("leadership was moved, or the error is another: %v", err)
			}
		})
	}
}

// TestMajorityLost checks that after a majority is lost, when the members cannot agree on a list, the list that they
// remember is used.
func TestMajorityLost(t *testing.T) {
	tn := newTenant(t, "a", "b", "c")
	for _, n := range tn.nodes {
		n.errors = []string{"etcdserver: no leader"}
	}
	tn.node("a").kubelet = connectionRefused
	d := tn.dialer("a")
	d.member, d.port = 8*time.Second, 8*time.Second // half of this is spent waiting for a majority
	found := d.survey(t.Context(), []string{"a", "b", "c"})
	if q := remediator.Count(found); found.Err != "" || q.Voters != 3 || q.Answering != 0 || !q.Lost() {
		t.Errorf("survey = %+v", found)
	}
	for _, m := range found.Members {
		if m.Answers != object.False || m.Reason != "etcdserver: no leader" {
			t.Errorf("member = %+v", m)
		}
	}
}

// TestPeersAreBounded checks that peers are asked about only some of the members if an etcd lists many without
// machines.
func TestPeersAreBounded(t *testing.T) {
	tn := newTenant(t, "a")
	list := []*etcd.Member{{ID: 1, Name: "a"}}
	answers := []answer{{node: "a", id: 1, answers: object.True}}
	for i := range maxMembers - 1 {
		name := fmt.Sprintf("m-%d", i)
		list = append(list, &etcd.Member{ID: uint64(i + 2), Name: name, ClientURLs: []string{"https://10.0.0.1:2379"}}) //nolint:gosec // small
		answers = append(answers, answer{node: name, answers: object.Unknown})
	}
	tn.dialer().queryPeers(t.Context(), list, answers)
	if tn.asked != maxParallel {
		t.Errorf("etcdctl was run %d times, want %d", tn.asked, maxParallel)
	}
}

// TestWaysLeaveNothing checks that every connection is closed after a survey.
func TestWaysLeaveNothing(t *testing.T) {
	// Only the servers of this test have this goroutine of SPDY connections.
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent(), goleak.IgnoreTopFunction("github.com/moby/spdystream.(*Connection).shutdown"))
	t.Run("", func(t *testing.T) {
		tn := newTenant(t, "a", "b", "c")
		tn.node("a").kubelet, tn.node("b").kubelet = kubeletHangs, connectionRefused
		d := tn.dialer("a")
		d.forward = portDelay
		found := d.survey(t.Context(), []string{"a", "b", "c"})
		if len(found.Members) != 3 || found.Members[0].Via[:6] != "client" || found.Members[1].Via != "etcdctl in etcd-c" || found.Members[2].Via != "port-forward" {
			t.Errorf("survey = %+v", found)
		}
	})
}

// TestEtcdctl checks that the output of the real etcdctl is understood.
func TestEtcdctl(t *testing.T) {
	file := func(name string) []byte {
		content, err := os.ReadFile(filepath.Join("testdata", "etcdctl", name))
		if err != nil {
			t.Fatal(err)
		}
		return content
	}
	m := &etcd.Member{ID: 0x20841a002de00821, Name: "n1"}
	asked := answer{node: "n1", answers: object.Unknown, route: route{peer: "n2"}}
	for _, c := range []struct {
		file    string
		member  *etcd.Member
		answers object.ConditionStatus
		leader  uint64
		why     string
	}{
		{"status.stdout.txt", m, object.True, 0x248ff1817228a82b, ""},
		{"no-leader.stdout.txt", m, object.False, 0, "etcdserver: no leader"},
		{"nobody.stdout.txt", m, object.Unknown, 0, "its output is not the status of one member"},
		{"status.stdout.txt", &etcd.Member{ID: 7, Name: "n1"}, object.Unknown, 0, "member 20841a002de00821 answers instead of member 7"},
	} {
		if a := asked.decode(file(c.file), c.member); a.answers != c.answers || a.leader != c.leader || !strings.Contains(a.reason, c.why) || (c.why == "") != (a.reason == "") {
			t.Errorf("%s: read = %+v", c.file, a)
		}
	}
	for name, want := range map[string]string{
		"nobody.stderr.txt":         "Failed to get the status of endpoint http://127.0.0.1:12379 (context deadline exceeded)",
		"bad-transferee.stderr.txt": "Error: etcdserver: bad leader transferee",
		"nobody.stdout.txt":         "null",
	} {
		if said := errorText(file(name), 1); said != want {
			t.Errorf("%s: last = %q", name, said)
		}
	}
}

// TestClientURL checks that a URL that a tenant's etcd lists is used only if a member can be there.
func TestClientURL(t *testing.T) {
	for _, c := range []struct {
		want string
		urls []string
	}{
		{"https://10.0.0.7:2379", []string{"https://10.0.0.7:2379", "https://10.0.0.8:2379"}},
		{"https://node-a:2379", []string{"http://127.0.0.1:2379", "https://0.0.0.0:2379", "https://node-a:2379"}},
		{"", []string{"https://10.0.0.7:2379,https://10.0.0.8:2379", "unix://x", "://", "https://" + strings.Repeat("x", 300)}},
		{"", nil},
	} {
		if got := clientURL(&etcd.Member{ClientURLs: c.urls}); got != c.want {
			t.Errorf("clientURL(%v) = %q", c.urls, got)
		}
	}
}

// TestReachable checks that the cache keeps at most two addresses of a control plane machine, and none of other
// machines.
func TestReachable(t *testing.T) {
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}}}
	m.Status.Addresses = clusterv1.MachineAddresses{
		{Type: clusterv1.MachineHostName, Address: "a"},
		{Type: clusterv1.MachineExternalIP, Address: "192.0.2.7"},
		{Type: clusterv1.MachineInternalIP, Address: "169.254.169.254"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.0.7"},
		{Type: clusterv1.MachineInternalIP, Address: "a.internal"},
		{Type: clusterv1.MachineExternalIP, Address: "2001:db8::7"},
	}
	worker := m.DeepCopy()
	worker.Labels = nil
	stripMachine(m)
	stripMachine(worker)
	if got := m.Status.Addresses; len(got) != 2 || got[0].Address != "10.0.0.7" || got[1].Address != "192.0.2.7" || len(worker.Status.Addresses) > 0 {
		t.Errorf("got addresses %v, and %v of a worker", got, worker.Status.Addresses)
	}
}
