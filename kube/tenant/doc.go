// Package tenant connects to clusters of tenants, with limits against hostile responses. The owner of
// a cluster decides what its API server, kubelets and etcd answer, and may want to harm the daemon:
// to fill its memory, to delay it, or to have it send requests to addresses that only the daemon
// can reach. The remediator makes all connections to workload clusters with this package. Each
// connection has these bounds:
//
//   - bytes: received on one connection, in one HTTP header, in one frame and in one output
//   - time: a connection ends with its context
//   - number: concurrent connections to one cluster, and to all clusters
//   - addresses: only addresses that the guard allows when they are dialled, and only a few for one name
//   - redirects: not followed; no proxy is used
//
// Use:
//
//	d := tenant.New(g)                                // shared by all callers
//	c, err := d.Cluster("fleet/prod", config)         // config from kube.ParseKubeconfig
//	c.Ping(ctx)                                       // checks its API server
//	c.Reader(ctx)                                     // reads its objects, over connections that are reused
//	c.Forward(ctx, "kube-system", "etcd-n1", 2379)    // a port of a pod, through its kubelet
//	c.Exec(ctx, "kube-system", "etcd-n1", "etcd", "etcdctl", "version")
//	c.Dial(ctx, "10.0.0.7:2379")                      // an address of a machine
//
// Port-forwards and commands use SPDY, as KubeadmControlPlane's do. They do not use client-go's
// dialers, which follow redirects, read the body of a rejection and the error stream of a command
// to the end, and wait without a context. Their SPDY library trusts the lengths that the peer
// states.
//
// This package never decides which requests to send or what a response means (package remediator/observe does).
package tenant
