package observe

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"scute.dev/kube/object"
)

// fakeEtcd is an etcd server with configured answers.
type fakeEtcd struct {
	etcd.UnimplementedClusterServer
	etcd.UnimplementedMaintenanceServer
	members []*etcd.Member
	errors  []string
	alarms  []*etcd.AlarmMember
}

func (l *fakeEtcd) MemberList(context.Context, *etcd.MemberListRequest) (*etcd.MemberListResponse, error) {
	return &etcd.MemberListResponse{Members: l.members}, nil
}

func (l *fakeEtcd) Status(context.Context, *etcd.StatusRequest) (*etcd.StatusResponse, error) {
	return &etcd.StatusResponse{Leader: 1, Errors: l.errors}, nil
}

func (l *fakeEtcd) Alarm(context.Context, *etcd.AlarmRequest) (*etcd.AlarmResponse, error) {
	return &etcd.AlarmResponse{Alarms: l.alarms}, nil
}

// TestAnswersAreBounded checks that only a limited number of an untrusted etcd's members are accepted, and that its
// answers are short enough for the log.
func TestAnswersAreBounded(t *testing.T) {
	var many []*etcd.Member
	for i := range 20_000 {
		many = append(many, &etcd.Member{ID: uint64(i + 1), Name: fmt.Sprintf("m-%d", i)}) //nolint:gosec // small
	}
	for name, c := range map[string]struct {
		says *fakeEtcd
		list int
		why  string
	}{
		"an etcd":                      {&fakeEtcd{members: many[:5]}, 5, ""},
		"some more members":            {&fakeEtcd{members: many[:maxMembers+1]}, 0, "is invalid"},
		"many members":                 {&fakeEtcd{members: many}, 0, "is invalid"},
		"a long name":                  {&fakeEtcd{members: []*etcd.Member{{ID: 1, Name: strings.Repeat("x", 1<<10)}}}, 0, "is invalid"},
		"a very long name":             {&fakeEtcd{members: []*etcd.Member{{ID: 1, Name: strings.Repeat("x", 1<<20)}}}, 0, "is invalid"},
		"a name that moves the cursor": {&fakeEtcd{members: []*etcd.Member{{ID: 1, Name: "m\x1b[2J"}}}, 0, "is invalid"},
		"many alarms":                  {&fakeEtcd{members: many[:1], alarms: slices.Repeat([]*etcd.AlarmMember{{MemberID: 1, Alarm: etcd.AlarmType_NOSPACE}}, 5_000)}, 1, ""},
		"a long complaint":             {&fakeEtcd{members: many[:1], errors: []string{strings.Repeat("no leader ", 100)}}, 1, "no leader"},
		"a very long complaint":        {&fakeEtcd{members: many[:1], errors: []string{strings.Repeat("x", 1<<20)}}, 0, "larger than max"},
		"a complaint that colours":     {&fakeEtcd{members: many[:1], errors: []string{"\x1b]0;owned\x07 no\nleader"}}, 1, "]0;owned no leader"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			server := grpc.NewServer()
			etcd.RegisterClusterServer(server, c.says)
			etcd.RegisterMaintenanceServer(server, c.says)
			go func() { _ = server.Serve(listener) }()
			defer server.Stop()
			conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), append(dialOptions(), grpc.WithTransportCredentials(insecure.NewCredentials()))...)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			a := (&line{ClientConn: conn}).query(t.Context(), answer{node: "m-0", answers: object.Unknown})
			list, _ := agreedMembers([]answer{a})
			if len(list) != c.list || len(a.reason) > 300 || len(a.alarms) > maxAlarms || !strings.Contains(a.reason, c.why) || (a.answers == object.True) != (c.why == "") {
				t.Errorf("answers %s, %d members, reason of %d bytes: %.100s", a.answers, len(list), len(a.reason), a.reason)
			}
		})
	}
}

// TestManyNodes checks that asking a cluster ends with its context, however many machines it has, and that the nodes
// that were not asked are reported briefly.
func TestManyNodes(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	ctx, over := context.WithCancel(t.Context())
	defer over()
	var asked atomic.Int32
	d := &dialer{cluster: clusterAt("https://" + silent.Addr().String()), timeouts: defaultTimeouts(), tls: func(func(error)) *tls.Config {
		if asked.Add(1) == maxParallel { // cancel as soon as the limit of concurrent requests is reached
			over()
		}
		return &tls.Config{MinVersion: tls.VersionTLS12}
	}}
	var nodes []string
	for i := range 1000 {
		nodes = append(nodes, fmt.Sprintf("n-%d", i))
	}
	answers := d.queryNodes(ctx, nodes)
	if last := answers[len(answers)-1]; last.answers != object.Unknown || last.reason != notQueried || last.node != "n-999" {
		t.Errorf("last answer = %+v, want Unknown because it was too late", last)
	}
	if said := formatReasons(answers); len(said) > maxParallel*300 || !strings.Contains(said, "n-0: no ") || !strings.HasSuffix(said, "; and 991 more") {
		t.Error(said)
	}
}

// TestClientPorts checks that at most two addresses are asked however many Machines name one node.
func TestClientPorts(t *testing.T) {
	var machines []clusterv1.Machine
	for i := range 20_000 {
		m := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprintf("m-%05d", 20_000-i)}}
		m.Status.NodeRef.Name = "n\x1b[2J"
		m.Status.Addresses = clusterv1.MachineAddresses{
			{Type: clusterv1.MachineInternalIP, Address: "10.0.0.7"}, {Type: clusterv1.MachineInternalIP, Address: fmt.Sprintf("fd00::%x", i+1)},
		}
		machines = append(machines, m)
	}
	want := map[string][]string{"n[2J": {"10.0.0.7:2379", "[fd00::4e20]:2379"}}
	if diff := cmp.Diff(want, clientPorts(machines)); diff != "" {
		t.Error(diff)
	}
}
