package cloud

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	cloudv1 "sigs.k8s.io/cluster-api/test/infrastructure/inmemory/pkg/cloud/api/v1alpha1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// members implements the calls to etcd for which the in-memory one returns less than a real one: which members answer,
// and the addresses of the members.
type members struct {
	etcd.UnimplementedClusterServer
	etcd.UnimplementedMaintenanceServer
	cloud  *Cloud
	server *grpc.Server
}

func newMembers(c *Cloud) *members {
	m := &members{cloud: c, server: grpc.NewServer()}
	etcd.RegisterClusterServer(m.server, m)
	etcd.RegisterMaintenanceServer(m.server, m)
	return m
}

// serve handles a request if it is one of these calls.
func (m *members) serve(w http.ResponseWriter, r *http.Request) bool {
	switch r.URL.Path {
	case "/etcdserverpb.Cluster/MemberList", "/etcdserverpb.Maintenance/Status", "/etcdserverpb.Maintenance/Alarm":
	default:
		return false
	}
	m.server.ServeHTTP(w, r)
	return true
}

// Status returns the status of the called member.
func (m *members) Status(ctx context.Context, _ *etcd.StatusRequest) (*etcd.StatusResponse, error) {
	return m.status(ctx, m.cloud.clusterOf(ctx), called(ctx))
}

// MemberList returns the members as the called member knows them. A linearizable request fails without a quorum.
func (m *members) MemberList(ctx context.Context, r *etcd.MemberListRequest) (*etcd.MemberListResponse, error) {
	cluster := m.cloud.clusterOf(ctx)
	status, err := m.status(ctx, cluster, called(ctx))
	if err != nil {
		return nil, err
	}
	list, err := m.cloud.Etcd(ctx, cluster)
	if err != nil {
		return nil, err
	}
	if r.GetLinearizable() && !Quorum(list) {
		return nil, rpctypes.ErrGRPCTimeout
	}
	response := &etcd.MemberListResponse{Header: status.Header}
	for _, member := range list {
		response.Members = append(response.Members, &etcd.Member{
			ID: numberOf(member), Name: member.Name, ClientURLs: []string{m.cloud.clientURL(cluster, member.Node)},
		})
	}
	return response, nil
}

func (m *members) status(ctx context.Context, cluster, node string) (*etcd.StatusResponse, error) {
	list, err := m.cloud.Etcd(ctx, cluster)
	if err != nil {
		return nil, err
	}
	self := slices.IndexFunc(list, func(member EtcdMember) bool { return member.Node == node })
	leader := slices.IndexFunc(list, func(member EtcdMember) bool { return member.Leader })
	switch {
	case self < 0:
		return nil, errors.New("the member was removed")
	case leader < 0:
		return nil, errors.New("etcdserver: no leader")
	}
	db := m.cloud.database(cluster, node)
	return &etcd.StatusResponse{
		Header: &etcd.ResponseHeader{MemberId: numberOf(list[self])}, Leader: numberOf(list[leader]),
		DbSize: db.Size, DbSizeInUse: db.InUse, DbSizeQuota: db.Quota,
	}, nil
}

// called returns the node of the called member. Clients name its pod as the authority.
func called(ctx context.Context) string {
	md, _ := metadata.FromIncomingContext(ctx)
	return strings.TrimPrefix(strings.Join(md.Get(":authority"), ","), "etcd-")
}

func numberOf(m EtcdMember) uint64 {
	id, _ := strconv.ParseUint(m.ID, 10, 64) // the provider has written it
	return id
}

// etcdctl implements the etcdctl commands that are used: "endpoint status --write-out=json" and "move-leader". Its
// output is that of the real etcdctl.
func (m *members) etcdctl(ctx context.Context, cluster string, command []string, stdout, stderr io.Writer) int {
	flags, words := map[string]string{}, []string{}
	for _, word := range command {
		if key, value, is := strings.Cut(strings.TrimPrefix(word, "--"), "="); is && strings.HasPrefix(word, "--") {
			flags[key] = value
		} else {
			words = append(words, word)
		}
	}
	endpoint := flags["endpoints"]
	timeout, err := time.ParseDuration(flags["command-timeout"])
	if err != nil || flags["cacert"] == "" || flags["cert"] == "" || flags["key"] == "" {
		fmt.Fprintf(stderr, "Error: %q: bad flags\n", command)
		return 128
	}
	node := m.at(ctx, cluster, endpoint)
	status, err := m.status(ctx, cluster, node)
	what := strings.Join(words, " ")
	switch {
	case node == "":
		select { // no member answers
		case <-time.After(timeout):
		case <-ctx.Done():
		}
		fmt.Fprintln(stdout, "null")
		fmt.Fprintf(stderr, "Failed to get the status of endpoint %s (context deadline exceeded)\n", endpoint)
		return 1
	case err != nil:
		fmt.Fprintln(stderr, "Error:", err)
		return 1
	case what == "etcdctl endpoint status" && flags["write-out"] == "json":
		fmt.Fprintf(stdout, `[{"Endpoint":%q,"Status":{"header":{"member_id":%d},"dbSize":%d,"leader":%d,"dbSizeInUse":%d,"dbSizeQuota":%d}}]`+"\n",
			endpoint, status.Header.MemberId, status.DbSize, status.Leader, status.DbSizeInUse, status.DbSizeQuota)
		return 0
	case len(words) == 3 && words[1] == "move-leader" && status.Leader != status.Header.MemberId:
		fmt.Fprintf(stderr, "Error: no leader endpoint given at [%s]\n", endpoint)
		return 128
	case len(words) == 3 && words[1] == "move-leader":
		if err := m.lead(ctx, cluster, words[2]); err != nil {
			fmt.Fprintln(stderr, "Error:", err)
			return 1
		}
		fmt.Fprintf(stdout, "Leadership transferred from %x to %s\n", status.Leader, words[2])
		return 0
	}
	fmt.Fprintf(stderr, "Error: unknown command %q\n", what)
	return 128
}

// at returns the node whose member answers at a client URL, or "".
func (m *members) at(ctx context.Context, cluster, url string) string {
	list, err := m.cloud.Etcd(ctx, cluster)
	if err != nil {
		return ""
	}
	for _, member := range list {
		if member.Answers && m.cloud.clientURL(cluster, member.Node) == url {
			return member.Node
		}
	}
	return ""
}

// lead makes a member the leader, in the form in which the in-memory etcd stores it.
func (m *members) lead(ctx context.Context, cluster, id string) error {
	number, err := strconv.ParseUint(id, 16, 64)
	if err != nil {
		return fmt.Errorf("bad target-leader ID %q", id)
	}
	to := m.cloud.As(WorkloadAPI).GetResourceGroup(cluster).GetClient()
	pods := &corev1.PodList{}
	if err := to.List(ctx, pods, client.InNamespace(metav1.NamespaceSystem), client.MatchingLabels{"component": "etcd", "tier": "control-plane"}); err != nil {
		return err
	}
	for i := range pods.Items {
		pod := &pods.Items[i]
		if pod.Annotations[cloudv1.EtcdMemberIDAnnotationName] == strconv.FormatUint(number, 10) {
			changed := pod.DeepCopy()
			changed.Annotations[cloudv1.EtcdLeaderFromAnnotationName] = time.Now().Format(time.RFC3339)
			return to.Patch(ctx, changed, client.MergeFrom(pod))
		}
	}
	return errors.New("etcdserver: bad leader transferee")
}

// clusterOf returns the workload cluster whose server received a request, or "" if it no longer exists.
func (c *Cloud) clusterOf(ctx context.Context) string {
	local, ok := ctx.Value(http.LocalAddrContextKey).(net.Addr)
	if !ok {
		return ""
	}
	_, port, err := net.SplitHostPort(local.String())
	if err != nil {
		return ""
	}
	for name, address := range c.mux.ListListeners() {
		if strings.HasSuffix(address, ":"+port) {
			return name
		}
	}
	return ""
}
