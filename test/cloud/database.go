package cloud

import (
	"context"
	"maps"
	"slices"

	etcd "go.etcd.io/etcd/api/v3/etcdserverpb"
)

// Database is what the etcd member of a node reports about its database: bytes on disk, bytes in use, and its quota.
type Database struct {
	Size, InUse, Quota int64
	// Full means that the alarm NOSPACE is raised for the member.
	Full bool
}

// SetDatabase sets what the etcd member on a node of a cluster reports about its database. The in-memory etcd has none.
func (c *Cloud) SetDatabase(cluster, node string, d Database) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.databases = maps.Clone(c.databases)
	if c.databases == nil {
		c.databases = make(map[string]Database)
	}
	c.databases[cluster+" "+node] = d
}

func (c *Cloud) database(cluster, node string) Database {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.databases[cluster+" "+node]
}

// Alarm returns the alarms of all members, as each member of a real etcd does.
func (m *members) Alarm(ctx context.Context, _ *etcd.AlarmRequest) (*etcd.AlarmResponse, error) {
	cluster := m.cloud.clusterOf(ctx)
	status, err := m.status(ctx, cluster, called(ctx))
	if err != nil {
		return nil, err
	}
	alarms, err := m.alarms(ctx, cluster)
	return &etcd.AlarmResponse{Header: status.Header, Alarms: alarms}, err
}

func (m *members) alarms(ctx context.Context, cluster string) ([]*etcd.AlarmMember, error) {
	list, err := m.cloud.Etcd(ctx, cluster)
	list = slices.DeleteFunc(list, func(member EtcdMember) bool { return !m.cloud.database(cluster, member.Node).Full })
	alarms := make([]*etcd.AlarmMember, 0, len(list))
	for _, member := range list {
		alarms = append(alarms, &etcd.AlarmMember{MemberID: numberOf(member), Alarm: etcd.AlarmType_NOSPACE})
	}
	return alarms, err
}
