// Package testbed runs real Cluster API management clusters on one machine, without containers.
// Each side has a real etcd and kube-apiserver with the real Cluster API controllers and webhooks.
// All sides share one in-memory cloud.
//
//	bed, err := testbed.Start(ctx, testbed.Options{})
//	if err != nil { ... }
//	defer bed.Stop()
//	prod, err := bed.Side("blue").CreateCluster(ctx, testbed.Cluster{Namespace: "fleet", Name: "prod", Topology: true})
//	err = bed.Side("blue").WaitAvailable(ctx, "fleet", "prod")
//
// The snapshots and the journal of the cloud show what happens to the machines. The package is for
// tests, benchmarks and demonstrations. Nothing outside the test module may import it.
package testbed
