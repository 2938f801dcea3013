package etcd

import (
	"context"
	"fmt"
	"os"
	"slices"
	"testing"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"scute.dev/remediator"
	"scute.dev/test/assets"
)

// TestSameName recreates a machine with its old host name. Its etcd member joins, and the earlier one, which is still
// listed, dies. The quorum counts both, the machine's member is the one that answers, and it can become the leader.
func TestSameName(t *testing.T) {
	p := newPlane(t)
	ctx := t.Context()
	binaries, err := assets.Find(ctx, os.Stderr)
	must(t, err)
	const again = 3
	name, dead := p.names[2], p.id(ctx, 2)
	p.names = append(p.names, name)
	p.certs = append(p.certs, p.issue(name, p.addresses[again]))
	eventually(t, "etcd accepts another member", func(ctx context.Context) error {
		_, err := etcd.NewClusterClient(p.conns[0]).MemberAdd(ctx, &etcd.MemberAddRequest{PeerURLs: []string{p.peer(again)}})
		return err
	})
	p.processes = append(p.processes, p.run(again, binaries.Etcd, "--initial-cluster-state=existing"))
	p.conns = append(p.conns, p.connect(again, p.certs[again]))
	eventually(t, "it answers", func(ctx context.Context) error {
		_, err := p.kv(again).Range(ctx, &etcd.RangeRequest{Key: []byte("any")})
		return err
	})
	must(t, p.processes[2].Kill(ctx))
	m := &clusterv1.Machine{}
	must(t, p.side.Client().Get(ctx, client.ObjectKey{Namespace: key.Namespace, Name: name}, m))
	m.Status.Addresses[0].Address = p.addresses[again]
	must(t, p.side.Client().Status().Update(ctx, m))

	eventually(t, "both are seen", func(ctx context.Context) error {
		f, err := p.Probe(ctx, &p.facts)
		if err != nil {
			return err
		}
		silent := []string{fmt.Sprintf("member %x of %s", dead, name)}
		if q := remediator.Count(f.Etcd); q.Voters != 4 || q.Answering != 3 || !slices.Equal(q.Silent, silent) {
			return fmt.Errorf("%+v: %+v", q, f.Etcd)
		}
		return nil
	})
	// An election may happen in between, so the request is repeated, as scuted does.
	eventually(t, "leadership is moved", func(ctx context.Context) error { return p.MoveLeader(ctx, key, p.names[:3], name) })
	eventually(t, "the member of the machine leads", func(ctx context.Context) error {
		s, err := p.maintenance(again).Status(ctx, &etcd.StatusRequest{})
		if err == nil && s.Leader != s.Header.MemberId {
			err = fmt.Errorf("%x leads", s.Leader)
		}
		return err
	})
}

// id returns the ID of a member.
func (m *members) id(ctx context.Context, i int) uint64 {
	m.t.Helper()
	s, err := m.maintenance(i).Status(ctx, &etcd.StatusRequest{})
	must(m.t, err)
	return s.Header.MemberId
}
