package observe

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"slices"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
)

// Snapshot writes a snapshot of a cluster's etcd, as `etcdctl snapshot save` does, and says which node's member it is from: one that
// answers and votes, and that does not lead where another one can be asked. It is an error, and what was written is of no use, if the
// checksum at its end is not that of what comes before.
func (o *Observer) Snapshot(ctx context.Context, key types.NamespacedName, nodes []string, to io.Writer) (node string, err error) {
	d, err := o.reach(ctx, key)
	if err == nil {
		node, err = d.snapshot(ctx, nodes, to)
	}
	if err != nil {
		return "", fmt.Errorf("taking a snapshot of etcd in %s: %w", key, err)
	}
	return node, nil
}

func (d *dialer) snapshot(ctx context.Context, nodes []string, to io.Writer) (node string, err error) {
	from, err := d.whole(ctx, nodes)
	if err != nil {
		return "", err
	}
	line, err := d.open(ctx, from.node, from.way)
	if err != nil {
		return "", err
	}
	defer line.Close()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	stream, err := etcd.NewMaintenanceClient(line.ClientConn).Snapshot(ctx, &etcd.SnapshotRequest{})
	if err != nil {
		return "", line.failed(ctx, err)
	}
	checked := &checked{to: to, left: mostSnapshot}
	for {
		part, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return from.node, checked.end()
		}
		if err != nil {
			return "", line.failed(ctx, err)
		}
		if _, err := checked.Write(part.Blob); err != nil {
			return "", err
		}
	}
}

// whole is the answer of a member that can give a snapshot.
func (d *dialer) whole(ctx context.Context, nodes []string) (answer, error) {
	ctx, cancel := context.WithTimeout(ctx, askFor)
	defer cancel()
	return d.askEverybody(ctx, nodes).whole()
}

// whole is that of a member that votes, was asked itself, and has all that a majority has: one that lags behind, or is cut off, cannot give
// the list of members as the majority has it. What an etcd with corrupt data has is not worth keeping.
func (heard responses) whole() (answer, error) {
	can := slices.DeleteFunc(slices.Clone(heard.each), func(a answer) bool {
		m := named(heard.list, heard.each, a.node)
		return a.answers != object.True || a.list == nil || a.way.peer != "" || m == nil || m.IsLearner ||
			slices.ContainsFunc(heard.alarms, func(alarm *etcd.AlarmMember) bool {
				return alarm.Alarm == etcd.AlarmType_CORRUPT && alarm.MemberID == m.ID
			})
	})
	if len(can) == 0 {
		return answer{}, fmt.Errorf("no member that votes and has what the majority has could be asked directly: %s", whys(heard.each))
	}
	return slices.MinFunc(can, func(a, b answer) int {
		leads := func(a answer) int {
			if a.id == a.leader {
				return 1
			}
			return 0
		}
		return cmp.Or(cmp.Compare(leads(a), leads(b)), cmp.Compare(a.node, b.node))
	}), nil
}

// checked passes a snapshot on, and holds it against the SHA-256 that its last bytes are.
type checked struct {
	to   io.Writer
	left int64             // bytes that it may still have
	sum  [sha256.Size]byte // the last bytes so far
	have int
	hash interface {
		io.Writer
		Sum(b []byte) []byte
	}
}

// mostSnapshot bounds a snapshot: twice what etcd advises a database to have at most. An API server that somebody else runs could send without end.
const mostSnapshot = 16 << 30

// Write passes on what it is given.
func (c *checked) Write(p []byte) (int, error) {
	if c.left < int64(len(p)) {
		return 0, errTooLarge
	}
	c.left -= int64(len(p))
	if c.hash == nil {
		c.hash = sha256.New()
	}
	last := append(slices.Clone(c.sum[:c.have]), p...)
	before := max(0, len(last)-sha256.Size)
	_, _ = c.hash.Write(last[:before])
	c.have = copy(c.sum[:], last[before:])
	return c.to.Write(p)
}

var (
	errChecksum = errors.New("the member sent a snapshot whose checksum is wrong")
	errTooLarge = errors.New("the snapshot is larger than 16 GiB")
)

func (c *checked) end() error {
	if c.have < sha256.Size || subtle.ConstantTimeCompare(c.hash.Sum(nil), c.sum[:]) != 1 {
		return errChecksum
	}
	return nil
}
