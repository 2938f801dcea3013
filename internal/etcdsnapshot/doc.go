// Package etcdsnapshot stores snapshots of workload clusters' etcd where RepairPolicies say, encrypted for whom they say.
package etcdsnapshot
