package observe

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"scute.dev/kube/object"
)

// liar is an etcd that says what it was told to.
type liar struct {
	etcd.UnimplementedClusterServer
	etcd.UnimplementedMaintenanceServer
	members []*etcd.Member
	errors  []string
	alarms  []*etcd.AlarmMember
}

func (l *liar) MemberList(context.Context, *etcd.MemberListRequest) (*etcd.MemberListResponse, error) {
	return &etcd.MemberListResponse{Members: l.members}, nil
}

func (l *liar) Status(context.Context, *etcd.StatusRequest) (*etcd.StatusResponse, error) {
	return &etcd.StatusResponse{Leader: 1, Errors: l.errors}, nil
}

func (l *liar) Alarm(context.Context, *etcd.AlarmRequest) (*etcd.AlarmResponse, error) {
	return &etcd.AlarmResponse{Alarms: l.alarms}, nil
}

// TestAnswersAreBounded: an etcd belongs to a tenant. However many members it lists, they are not all asked, and what it
// says of itself fits into the log.
func TestAnswersAreBounded(t *testing.T) {
	var many []*etcd.Member
	for i := range 20_000 {
		many = append(many, &etcd.Member{ID: uint64(i + 1), Name: fmt.Sprintf("m-%d", i)}) //nolint:gosec // small
	}
	for name, c := range map[string]struct {
		says *liar
		list int
		why  string
	}{
		"an etcd":          {&liar{members: many[:5]}, 5, ""},
		"many members":     {&liar{members: many}, 0, "it lists 20000 members"},
		"a long name":      {&liar{members: []*etcd.Member{{ID: 1, Name: strings.Repeat("x", 1<<20)}}}, 0, "it lists 1 members"},
		"many alarms":      {&liar{members: many[:1], alarms: slices.Repeat([]*etcd.AlarmMember{{MemberID: 1, Alarm: etcd.AlarmType_NOSPACE}}, 20_000)}, 1, ""},
		"a long complaint": {&liar{members: many[:1], errors: []string{strings.Repeat("x", 1<<20)}}, 1, "xxx"},
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
			conn, err := grpc.NewClient("passthrough:///"+listener.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			a := (&line{ClientConn: conn}).inquire(t.Context(), answer{node: "m-0", answers: object.Unknown})
			list, _ := listed([]answer{a})
			if len(list) != c.list || len(a.why) > 300 || len(a.alarms) > mostAlarms || !strings.Contains(a.why, c.why) || (a.answers == object.True) != (c.why == "") {
				t.Errorf("%s, %d members, %d bytes: %.100s", a.answers, len(list), len(a.why), a.why)
			}
		})
	}
}
