package observe

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
	"k8s.io/apimachinery/pkg/types"

	"scute.dev/kube/object"
	"scute.dev/kube/tenant"
	"scute.dev/remediator"
)

const (
	// probeTimeout limits all requests of one probe of a cluster together.
	probeTimeout = 20 * time.Second
	// notQueried is the reason of a member that was not queried because probeTimeout passed.
	notQueried = "not asked: the time for asking this cluster is used up"
	// reachTimeout bounds the probe of the workload cluster's API server.
	reachTimeout  = 3 * time.Second
	memberTimeout = 3 * time.Second
	secretTimeout = 5 * time.Second
)

// Probe queries the workload cluster's API server and, for a control plane with stacked etcd, the
// members of etcd. It returns a copy of seen with Cluster.Reachable and Etcd set. If a member does
// not respond, that is a fact, not an error. Probe takes at most 20 s and closes its connections.
func (o *Observer) Probe(ctx context.Context, seen *remediator.Facts) (*remediator.Facts, error) {
	f := *seen
	f.Cluster.Reachable, f.Etcd = object.Unknown, nil
	if f.Owner.Cluster == "" {
		return &f, nil
	}
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	key := types.NamespacedName{Namespace: f.Owner.Namespace, Name: f.Owner.Cluster}
	asked := remediator.OwnerKind(f.Owner.Kind).IsControlPlane() && !f.Owner.ExternalEtcd
	cluster, err := o.workload(asking, key)
	if err != nil {
		if asked {
			f.Etcd = &remediator.Etcd{Err: err.Error()}
		}
		return &f, ctx.Err()
	}
	reach := make(chan object.ConditionStatus, 1)
	go func() { reach <- apiServerAnswers(asking, cluster) }()
	if asked {
		f.Etcd = o.etcd(asking, key, cluster, f.Nodes())
	}
	f.Cluster.Reachable = <-reach
	return &f, ctx.Err()
}

func apiServerAnswers(ctx context.Context, cluster *tenant.Cluster) object.ConditionStatus {
	ctx, cancel := context.WithTimeout(ctx, reachTimeout)
	defer cancel()
	if cluster.Ping(ctx) != nil {
		return object.False
	}
	return object.True
}

// etcd queries each member of etcd. It sets Err of the result if no member could be queried.
func (o *Observer) etcd(ctx context.Context, key types.NamespacedName, cluster *tenant.Cluster, nodes []string) *remediator.Etcd {
	d, err := o.dialer(ctx, key, cluster)
	if err != nil {
		return &remediator.Etcd{Err: err.Error()}
	}
	if len(nodes) == 0 {
		return &remediator.Etcd{Err: "no machine has a node, so there is no member to ask"}
	}
	return d.survey(ctx, nodes)
}

// MoveLeader asks the leader of etcd to transfer the leadership to the member on node to. It does
// nothing if that member already leads. It finds the leader through nodes.
func (o *Observer) MoveLeader(ctx context.Context, key types.NamespacedName, nodes []string, to string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	return o.onEtcd(ctx, key, func(d *dialer) error { return d.moveLeader(ctx, nodes, to) },
		"moving the leadership of etcd in %s to %s", key, to)
}

// Defragment defragments the database of the member on a node if the database has at least size
// bytes. The member serves no requests until it has finished. Defragment returns when the member
// has finished or when ctx ends. If ctx ends first, the member continues.
func (o *Observer) Defragment(ctx context.Context, key types.NamespacedName, nodes []string, node string, size int64) error {
	return o.onEtcd(ctx, key, func(d *dialer) error { return d.defragment(ctx, nodes, node, size) },
		"defragmenting the member of etcd on %s in %s", node, key)
}

// Disarm disarms the NOSPACE alarms of all members of etcd.
func (o *Observer) Disarm(ctx context.Context, key types.NamespacedName, nodes []string) error {
	return o.onEtcd(ctx, key, func(d *dialer) error { return d.disarm(ctx, nodes) }, "disarming the alarm NOSPACE of etcd in %s", key)
}

// onEtcd runs change with a dialer for the etcd of a cluster. format describes the change in an error.
func (o *Observer) onEtcd(ctx context.Context, key types.NamespacedName, change func(*dialer) error, format string, args ...any) error {
	cluster, err := o.workload(ctx, key)
	var d *dialer
	if err == nil {
		d, err = o.dialer(ctx, key, cluster)
	}
	if err == nil {
		err = change(d)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", fmt.Sprintf(format, args...), err)
	}
	return nil
}

// defragment defragments the member on a node. It first queries all members again, because the
// defragmentation blocks one of them, and fails if a member does not respond, is a learner, or has
// corrupt data.
func (d *dialer) defragment(ctx context.Context, nodes []string, node string, size int64) error {
	by, err := d.healthyAnswer(ctx, nodes, node)
	if err != nil {
		return err
	}
	if by.size < size {
		return nil // already defragmented
	}
	line, err := d.open(ctx, node, by.route)
	if err != nil {
		return err
	}
	defer line.Close()
	if err := d.cluster.CheckWritesAllowed(); err != nil {
		return err
	}
	if _, err := etcd.NewMaintenanceClient(line.ClientConn).Defragment(ctx, &etcd.DefragmentRequest{}); err != nil {
		return line.failureReason(ctx, err)
	}
	return nil
}

// healthyAnswer returns the answer of the member on a node. It returns an error unless all members
// respond, vote, and have intact data.
func (d *dialer) healthyAnswer(ctx context.Context, nodes []string, node string) (answer, error) {
	asking, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	heard := d.queryMembers(asking, nodes)
	if heard.list == nil {
		return answer{}, fmt.Errorf("no member could list the members: %s", formatReasons(heard.each))
	}
	found := mergeAnswers(heard.list, heard.alarms, heard.each)
	for _, m := range found.Members {
		if m.Answers != object.True || m.Learner {
			return answer{}, fmt.Errorf("the member on %s is a learner, or does not answer: %s", m.Node, m.Reason)
		}
	}
	i := slices.IndexFunc(heard.each, func(a answer) bool { return a.node == node })
	switch {
	case memberNamed(heard.list, heard.each, node) == nil || i < 0:
		return answer{}, errors.New("etcd lists no member on the node")
	case heard.each[i].route.peer != "":
		return answer{}, fmt.Errorf("it can only be reached by %s", heard.each[i].route)
	}
	return heard.each[i], nil
}

func (d *dialer) disarm(ctx context.Context, nodes []string) error {
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	heard := d.queryMembers(ctx, nodes)
	i := slices.IndexFunc(heard.each, func(a answer) bool { return a.answers == object.True && a.route.peer == "" })
	if i < 0 {
		return fmt.Errorf("no member could be reached: %s", formatReasons(heard.each))
	}
	line, err := d.open(ctx, heard.each[i].node, heard.each[i].route)
	if err != nil {
		return err
	}
	defer line.Close()
	for _, alarm := range heard.alarms {
		if alarm.Alarm != etcd.AlarmType_NOSPACE {
			continue
		}
		if err := d.cluster.CheckWritesAllowed(); err != nil {
			return err
		}
		request := &etcd.AlarmRequest{Action: etcd.AlarmRequest_DEACTIVATE, MemberID: alarm.MemberID, Alarm: alarm.Alarm}
		if _, err := etcd.NewMaintenanceClient(line.ClientConn).Alarm(ctx, request); err != nil {
			return line.failureReason(ctx, err)
		}
	}
	return nil
}

func (l *line) failureReason(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return errors.New("it did not answer in time")
	}
	_, why := l.classify(err)
	return errors.New(why)
}
