package observe

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.uber.org/goleak"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"scute.dev/kube/object"
	"scute.dev/remediator"
)

func TestConclude(t *testing.T) {
	list := []*etcd.Member{{ID: 1, Name: "a"}, {ID: 2, Name: "b"}, {ID: 3, Name: "c"}, {ID: 4, IsLearner: true}, {ID: 0x5f, Name: ""}}
	alarms := []*etcd.AlarmMember{{MemberID: 2, Alarm: etcd.AlarmType_CORRUPT}, {MemberID: 9, Alarm: etcd.AlarmType_NOSPACE}, {MemberID: 1}}
	got := mergeAnswers(list, alarms, []answer{
		{node: "b", id: 2, answers: object.True, leader: 1},
		{node: "a", id: 1, answers: object.True, leader: 1, size: 3, inUse: 2, quota: 4, reason: "no connection through its node", route: route{peer: "b"}},
		{node: "c", answers: object.Unknown, reason: "no answer within 3s", leader: 2},
		{node: "removed", answers: object.False, reason: "removed"},
	})
	want := &remediator.Etcd{
		Members: []remediator.Member{
			{Node: "a", Leader: true, Answers: object.True, Reason: "no connection through its node", Via: "etcdctl in etcd-b", Size: 3, InUse: 2, Quota: 4},
			{Node: "b", Answers: object.False, Reason: "alarm CORRUPT", Via: "port-forward"},
			{Node: "c", Answers: object.Unknown, Reason: "no answer within 3s"},
			{Node: "member 4", Unstarted: true, Learner: true, Answers: object.False, Reason: "it was added, and has not started yet"},
			{Node: "member 5f", Unstarted: true, Answers: object.False, Reason: "it was added, and has not started yet"},
		},
		Alarms: []string{"CORRUPT of b", "NOSPACE of member 9"},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

// TestListed checks that the list of a majority takes precedence over a longer list of one member.
func TestListed(t *testing.T) {
	long, short := []*etcd.Member{{ID: 1}, {ID: 2}, {ID: 3}}, []*etcd.Member{{ID: 1}, {ID: 2}}
	lost := []answer{{node: "a", answers: object.False, stale: short}, {node: "b", answers: object.False, stale: long}, {node: "c", answers: object.Unknown}}
	if list, _ := agreedMembers(lost); len(list) != 3 {
		t.Errorf("majority lost: got %v, want the longest list", list)
	}
	if list, _ := agreedMembers(append(lost, answer{node: "d", answers: object.True, list: short})); len(list) != 2 {
		t.Errorf("got %v, want the list of the majority", list)
	}
	if list, _ := agreedMembers(lost[2:]); list != nil {
		t.Errorf("no member answers: got list %v", list)
	}
	if reportedLeader([]answer{{answers: object.True, leader: 1}, {answers: object.True, leader: 2}, {answers: object.True, leader: 2}, {answers: object.False, leader: 1}, {answers: object.False, leader: 1}}) != 2 {
		t.Error("elected is not the leader that most healthy members name")
	}
	if got := ownErrors([]string{"etcdserver: no leader", "memberID:9 alarm:NOSPACE "}); len(got) != 1 || got[0] != "etcdserver: no leader" {
		t.Error(got)
	}
}

func TestMeaning(t *testing.T) {
	unavailable := status.Error(codes.Unavailable, `connection error: desc = "transport: authentication handshake failed: EOF"`)
	for _, c := range []struct {
		name string
		line *line
		err  error
		want object.ConditionStatus
		why  string
	}{
		{"a dead kubelet", &line{refused: errors.New("dial tcp 10.0.0.7:10250: i/o timeout")}, unavailable, object.Unknown, "no connection through its node: dial tcp"},
		{"nothing behind the port", &line{reached: true}, unavailable, object.False, "its node answers, and etcd does not"},
		{"silence", &line{reached: true, timeout: 3 * time.Second}, status.FromContextError(context.DeadlineExceeded).Err(), object.Unknown, "no answer within 3s"},
		{"another CA", &line{reached: true, distrusted: errors.New("signed by unknown authority")}, unavailable, object.Unknown, "cannot be trusted"},
		{"it refuses us", &line{reached: true}, status.Error(codes.Unavailable, "remote error: tls: bad certificate"), object.Unknown, "rejects the client certificate"},
		{"a client port refuses", &line{route: route{address: "10.0.0.7:2379"}, refused: errors.New("connect: connection refused")}, unavailable, object.Unknown, "no connection to 10.0.0.7:2379: connect"},
		{"something else has the address", &line{route: route{address: "10.0.0.7:2379"}, reached: true}, unavailable, object.Unknown, "handshake failed"},
		{"it refuses", &line{reached: true}, status.Error(codes.Unknown, "member\nremoved"), object.False, "member removed"},
	} {
		if is, why := c.line.classify(c.err); is != c.want || !strings.Contains(why, c.why) {
			t.Errorf("%s: got %s: %s", c.name, is, why)
		}
	}
	if why := shorten(errors.New(strings.Repeat("ä", 500))); len(why) > 210 {
		t.Errorf("reason has %d bytes, want at most 210", len(why))
	}
}

// TestNoSpace checks that members whose databases are full, which answer reads and vote, count as answering, and that
// their alarms are reported.
func TestNoSpace(t *testing.T) {
	var list []*etcd.Member
	var alarms []*etcd.AlarmMember
	var answers []answer
	for i, name := range []string{"a", "b", "c"} {
		list = append(list, &etcd.Member{ID: uint64(i + 1), Name: name})
		alarms = append(alarms, &etcd.AlarmMember{MemberID: uint64(i + 1), Alarm: etcd.AlarmType_NOSPACE})
		answers = append(answers, answer{node: name, answers: object.True, leader: 1})
	}
	found := mergeAnswers(list, alarms, answers)
	if q := remediator.Count(found); q.Answering != 3 || q.Lost() {
		t.Errorf("Count = %+v, want 3 answering", q)
	}
	if diff := cmp.Diff([]string{"NOSPACE of a", "NOSPACE of b", "NOSPACE of c"}, found.Alarms); diff != "" {
		t.Error(diff)
	}
}

// TestSilence checks that asking through an API server that does not answer ends in time with Unknown and closes its
// connections, at each stage at which a connection can hang.
func TestSilence(t *testing.T) {
	defer goleak.VerifyNone(t)
	ctx := t.Context()

	mute, err := net.Listen("tcp", "127.0.0.1:0") // accepts connections and sends nothing
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	closed.Close()
	ended := make(chan struct{})
	stuck := httptest.NewTLSServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { // like an API server that waits for a dead kubelet
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer stuck.Close()
	defer close(ended)
	failing := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "error dialing backend: connection refused", http.StatusInternalServerError)
	}))
	defer failing.Close()

	for _, c := range []struct {
		name, host string
		why        string
	}{
		{"mute", "https://" + mute.Addr().String(), "no "},
		{"nobody there", "https://" + closed.Addr().String(), "connection refused"},
		{"stuck", stuck.URL, "no "},
		{"failing", failing.URL, "error dialing backend"},
	} {
		d := &dialer{cluster: clusterAt(c.host), timeouts: defaultTimeouts(), tls: func(func(error)) *tls.Config { return &tls.Config{MinVersion: tls.VersionTLS12} }}
		a := d.query(ctx, "node") // it returns although ctx has no deadline
		t.Logf("%s: %s", c.name, a.reason)
		if a.answers != object.Unknown || !strings.Contains(a.reason, c.why) {
			t.Errorf("%s: got %s: %s", c.name, a.answers, a.reason)
		}
		if reach := apiServerAnswers(ctx, d.cluster); reach != object.False {
			t.Errorf("%s: reach = %s", c.name, reach)
		}
	}
}

// TestSameName checks that members of the same name are distinguished by ID, as when a machine was recreated with its
// old host name and its old member was not removed.
func TestSameName(t *testing.T) {
	dead := &etcd.Member{ID: 9, Name: "host-1"}
	alive := []*etcd.Member{{ID: 1, Name: "host-1"}, {ID: 2, Name: "host-2"}, {ID: 3, Name: "host-3"}}
	for name, list := range map[string][]*etcd.Member{
		"the dead one is listed last":  append(slices.Clone(alive), dead),
		"the dead one is listed first": append([]*etcd.Member{dead}, alive...),
	} {
		t.Run(name, func(t *testing.T) {
			answers := []answer{
				{node: "host-1", id: 1, answers: object.True, leader: 1},
				{node: "host-2", id: 2, answers: object.True, leader: 1},
				{node: "host-3", id: 3, answers: object.True, leader: 1},
			}
			discardForeign(list, answers)
			got := mergeAnswers(list, nil, answers)
			if q := remediator.Count(got); q.Voters != 4 || q.Answering != 3 || !slices.Equal(q.Silent, []string{"member 9 of host-1"}) {
				t.Errorf("Count = %+v", q)
			}
			if i := slices.IndexFunc(got.Members, func(m remediator.Member) bool { return m.Namesake == "host-1" }); i < 0 || got.Members[i].Answers != object.False {
				t.Errorf("members = %+v, want the dead one with Namesake host-1", got.Members)
			}
			if i := slices.IndexFunc(got.Members, func(m remediator.Member) bool { return m.Leader }); i < 0 || got.Members[i].Node != "host-1" {
				t.Errorf("members = %+v, want the leader host-1", got.Members)
			}
		})
	}
}

// TestAddsByQuorum checks from which versions on etcd accepts a new member while another one is disconnected.
func TestAddsByQuorum(t *testing.T) {
	of := func(versions ...string) (list []answer) {
		for _, v := range versions {
			list = append(list, answer{answers: object.True, version: v})
		}
		return append(list, answer{answers: object.False})
	}
	for want, all := range map[bool][][]answer{
		true:  {of("3.6.11"), of("3.6.14", "3.7.0")},
		false: {of(), of(""), of("3.6.10"), of("3.5.30"), of("3.6.14", "3.6.8")},
	} {
		for _, answers := range all {
			if got := addsByQuorum(answers); got != want {
				t.Errorf("%+v: addsByQuorum = %t", answers, got)
			}
		}
	}
}
